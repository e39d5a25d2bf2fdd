//! The content of the key file: JSON, one key per line. An unknown field is an error, because it could
//! be a limit that would not be enforced.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Deserialize;

use super::record::Record;
use crate::key::{KeyId, KeyStatus};
use crate::ring::KEYS_MAX;

/// The version of the format.
const VERSION: u32 = 1;

/// All keys by id.
#[derive(Debug, Clone, Default)]
pub(crate) struct Document {
    pub(crate) records: BTreeMap<KeyId, Record>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    #[serde(rename = "version")]
    _version: u32,
    keys: Vec<Record>,
}

/// Only the version, to tell a newer file from a damaged one.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

impl Document {
    /// The error says where the text is wrong, and why.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, String> {
        if let Ok(Version { version }) = serde_json::from_slice(text)
            && version != VERSION
        {
            return Err(format!(
                "its version is {version}, and this program supports only {VERSION}"
            ));
        }
        let deserializer = &mut serde_json::Deserializer::from_slice(text);
        let wire: Wire = serde_path_to_error::deserialize(&mut *deserializer)
            .map_err(|error| error.to_string())?;
        deserializer.end().map_err(|error| error.to_string())?;
        if wire.keys.len() > KEYS_MAX {
            return Err(format!("it has more than {KEYS_MAX} keys"));
        }
        let mut records = BTreeMap::new();
        for record in wire.keys {
            let (id, key) = (record.key.id, &record.key);
            if !key.holder.may_have(key.level) {
                return Err(format!("the key `{id}` belongs to an agent and may not be `admin`"));
            }
            if records.insert(id, record).is_some() {
                return Err(format!("the key `{id}` appears twice"));
            }
        }
        Ok(Self { records })
    }

    /// Makes room for one more key: removes the oldest revoked or expired one if necessary. Returns
    /// whether there is room.
    pub(crate) fn make_room(&mut self, now: DateTime<Utc>) -> bool {
        if self.records.len() < KEYS_MAX {
            return true;
        }
        let keys = self.records.values().map(|record| &record.key);
        let inactive = keys.filter(|key| key.status(now) != KeyStatus::Active);
        let oldest = inactive.min_by_key(|key| (key.created_at, key.id)).map(|key| key.id);
        oldest.and_then(|id| self.records.remove(&id)).is_some()
    }

    /// The text of the file.
    pub(crate) fn text(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut text = format!("{{\"version\":{VERSION},\"keys\":[").into_bytes();
        for (index, record) in self.records.values().enumerate() {
            text.extend_from_slice(if index == 0 { b"\n" } else { b",\n" });
            serde_json::to_writer(&mut text, record)?;
        }
        text.extend_from_slice(b"\n]}\n");
        Ok(text)
    }
}
