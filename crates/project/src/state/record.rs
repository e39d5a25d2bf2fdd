//! `project.json` in a state folder: the root that the state belongs to.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use antiphon_private_file::{Durability, open, write_atomic};
use serde::{Deserialize, Serialize};

use super::identity::FolderIdentity;

/// Name of the record in a state folder.
const FILE: &str = "project.json";

/// Longest record, in bytes.
const BYTES_MAX: u64 = 64 * 1024;

/// The root of a state folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProjectRecord {
    root: RootPath,
    #[serde(flatten)]
    pub(crate) identity: FolderIdentity,
}

/// A path as text, or as bytes when it is not UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum RootPath {
    Text(String),
    Bytes(Vec<u8>),
}

impl ProjectRecord {
    /// A record of the folder that is at `root` now.
    pub(crate) fn of(root: &Path) -> io::Result<Self> {
        let path = match root.to_str() {
            Some(text) => RootPath::Text(text.to_owned()),
            None => RootPath::Bytes(root.as_os_str().as_bytes().to_owned()),
        };
        Ok(Self { root: path, identity: FolderIdentity::of(root)? })
    }

    /// Path of the root when the record was written.
    pub(crate) fn root(&self) -> PathBuf {
        match &self.root {
            RootPath::Text(text) => text.into(),
            RootPath::Bytes(bytes) => OsString::from_vec(bytes.clone()).into(),
        }
    }

    /// The record of a state folder, if it has one.
    pub(crate) fn read(state: &Path) -> io::Result<Option<Self>> {
        let file = match open(&state.join(FILE)) {
            Ok(file) => file,
            Err(error) => {
                let error = io::Error::from(error);
                return if error.kind() == io::ErrorKind::NotFound { Ok(None) } else { Err(error) };
            }
        };
        let mut text = String::new();
        file.take(BYTES_MAX).read_to_string(&mut text)?;
        serde_json::from_str(&text).map(Some).map_err(io::Error::other)
    }

    /// Writes the record into a state folder.
    pub(crate) fn write(&self, state: &Path) -> io::Result<()> {
        let text = serde_json::to_string(self).map_err(io::Error::other)?;
        write_atomic(&state.join(FILE), format!("{text}\n").as_bytes(), Durability::Synced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_holds_any_path() {
        let folder = tempfile::tempdir().unwrap();
        let odd = folder.path().join(OsString::from_vec(b"odd \xff\n".to_vec()));
        std::fs::create_dir(&odd).unwrap();
        assert_eq!(ProjectRecord::read(folder.path()).unwrap(), None);
        for root in [folder.path(), &odd] {
            let record = ProjectRecord::of(root).unwrap();
            record.write(folder.path()).unwrap();
            assert_eq!(ProjectRecord::read(folder.path()).unwrap(), Some(record.clone()));
            assert_eq!(record.root(), root);
        }
    }
}
