//! A key as the file has it: with the digests of its secrets.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use subtle::Choice;

use crate::key::{Key, KeyStatus};
use crate::presented::Presented;
use crate::refused::{Allowed, Refused};
use crate::secret::Digest;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    pub(crate) key: Key,
    /// Of the key that is in use.
    pub(crate) sha256: Digest,
    /// Of the one before it, which is good until `old_secret_until`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) old_sha256: Option<Digest>,
}

/// Whether what is shown is `record`'s key. Somebody without a record takes the same steps as
/// somebody with one, and only who knows a secret learns what became of it.
pub(crate) fn check(
    record: Option<&Record>,
    presented: &Presented,
    now: DateTime<Utc>,
) -> Result<Allowed, Refused> {
    let shown = presented.digest();
    let current = record.map_or(Digest::NOBODY, |record| record.sha256);
    let old = record.and_then(|record| record.old_sha256).unwrap_or(Digest::NOBODY);
    let (is_current, is_old): (Choice, Choice) = (shown.matches(&current), shown.matches(&old));
    let Some(record) = record.filter(|_| bool::from(is_current | is_old)) else {
        return Err(Refused::Unknown);
    };
    let key = &record.key;
    match key.status(now) {
        KeyStatus::Revoked => return Err(Refused::Revoked),
        KeyStatus::Expired => return Err(Refused::Expired),
        KeyStatus::Active => {}
    }
    let in_grace = key.old_secret_until.is_some_and(|until| now < until);
    if !bool::from(is_current) && !in_grace {
        return Err(Refused::Expired);
    }
    Ok(Allowed {
        id: key.id,
        name: key.name.clone(),
        level: key.level,
        holder: key.holder.clone(),
        rate_per_minute: key.rate_per_minute,
        spend: key.spend,
    })
}
