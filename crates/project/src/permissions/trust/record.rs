//! `trust.json` in a state folder: what the user trusts in the project, and what the user declined.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use antiphon_private_file::{Durability, lock_within, open, open_lock_at, write_atomic};
use serde::{Deserialize, Serialize};

use crate::state::identity::FolderIdentity;

const FILE: &str = "trust.json";
const LOCK: &str = "trust.lock";

/// Longest record, in bytes: room for all agents that a folder may have, with names as long as they may be.
const BYTES_MAX: u64 = 4 * 1024 * 1024;

/// How long another process may take to write the record.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// What the user trusts, by path below the project's root.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct TrustRecord {
    trusted: BTreeMap<String, Pin>,
    /// Content that a file may have next: a command of ours is writing it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    next: BTreeMap<String, String>,
    /// What the user was asked about and declined: it is not asked about again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) declined: Option<String>,
}

/// What a trusted file or folder is recognized by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Pin {
    /// A file, by the SHA-256 of its content.
    Content(String),
    /// A folder, whatever is in it.
    Folder(FolderIdentity),
}

impl TrustRecord {
    pub(super) fn path(state: &Path) -> PathBuf {
        state.join(FILE)
    }

    pub(super) fn pin_next(&mut self, path: &str, version: String) {
        self.next.insert(path.to_owned(), version);
    }

    pub(super) fn pin(&mut self, path: &str, pin: Pin) {
        self.next.remove(path);
        self.trusted.insert(path.to_owned(), pin);
    }

    pub(super) fn knows(&self, path: &str) -> bool {
        self.trusted.contains_key(path)
    }

    pub(super) fn trusts(&self, path: &str, pin: &Pin) -> bool {
        match pin {
            Pin::Content(version) => self.trusts_content(path, version),
            Pin::Folder(identity) => self.trusts_folder(path, identity),
        }
    }

    pub(super) fn trusts_content(&self, path: &str, version: &str) -> bool {
        let is_trusted =
            matches!(self.trusted.get(path), Some(Pin::Content(trusted)) if trusted == version);
        is_trusted || self.next.get(path).is_some_and(|next| next == version)
    }

    pub(super) fn trusts_folder(&self, path: &str, identity: &FolderIdentity) -> bool {
        matches!(self.trusted.get(path), Some(Pin::Folder(trusted)) if trusted.is_same(identity))
    }

    /// The record of a state folder; empty when there is none.
    pub(super) fn read(state: &Path) -> io::Result<Self> {
        let file = match open(&Self::path(state)) {
            Ok(file) => file,
            Err(error) => {
                let error = io::Error::from(error);
                let is_missing = error.kind() == io::ErrorKind::NotFound;
                return if is_missing { Ok(Self::default()) } else { Err(error) };
            }
        };
        let mut text = String::new();
        file.take(BYTES_MAX + 1).read_to_string(&mut text)?;
        check_length(&text)?;
        serde_json::from_str(&text).map_err(io::Error::other)
    }

    /// Changes the record of a state folder. Two processes change it one after the other.
    pub(super) fn update(state: &Path, change: impl FnOnce(&mut Self)) -> io::Result<()> {
        let lock = open_lock_at(File::open(state)?, LOCK)?;
        lock_within(&lock, LOCK_WAIT).map_err(io::Error::other)?;
        let before = Self::read(state)?;
        let mut record = before.clone();
        change(&mut record);
        if record == before {
            return Ok(());
        }
        let text = serde_json::to_string_pretty(&record).map_err(io::Error::other)?;
        check_length(&text)?;
        write_atomic(&Self::path(state), format!("{text}\n").as_bytes(), Durability::Synced)
    }
}

/// Refuses a record that would not be read again.
fn check_length(text: &str) -> io::Result<()> {
    if text.len() as u64 <= BYTES_MAX {
        return Ok(());
    }
    let advice = format!("it would have more than {BYTES_MAX} bytes: trust fewer files");
    Err(io::Error::new(io::ErrorKind::FileTooLarge, advice))
}

#[cfg(test)]
mod tests {
    use antiphon_agent_files::AGENTS_MAX;
    use antiphon_core::NAME_BYTES_MAX;

    use super::*;

    #[test]
    fn as_many_agents_as_there_may_be_are_trusted() {
        let state = tempfile::tempdir().unwrap();
        let path = |number: usize| format!(".antiphon/agents/{number:0>NAME_BYTES_MAX$}.md");
        let version = "0".repeat(64);
        let trust_all = |record: &mut TrustRecord| {
            for number in 0..AGENTS_MAX {
                record.pin(&path(number), Pin::Content(version.clone()));
            }
        };
        TrustRecord::update(state.path(), trust_all).unwrap();
        let record = TrustRecord::read(state.path()).unwrap();
        assert!((0..AGENTS_MAX).all(|number| record.trusts_content(&path(number), &version)));
    }

    #[test]
    fn a_record_that_is_too_long_is_refused_and_the_one_before_stays() {
        let state = tempfile::tempdir().unwrap();
        let pin = || Pin::Content("0".repeat(64));
        TrustRecord::update(state.path(), |record| record.pin("a", pin())).unwrap();
        let long = "b".repeat(usize::try_from(BYTES_MAX).unwrap());
        let error = TrustRecord::update(state.path(), |record| record.pin(&long, pin()));
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert!(TrustRecord::read(state.path()).unwrap().knows("a"));
    }
}
