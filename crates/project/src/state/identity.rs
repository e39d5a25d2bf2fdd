//! Which folder is at a path: the root of a project, a folder of requests. A path can name another folder later: a clone of something else, a new disk.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// Distinguishes two folders at one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FolderIdentity {
    device: u64,
    inode: u64,
    /// When the folder was created; absent where the file system does not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    born: Option<DateTime<Utc>>,
}

impl FolderIdentity {
    /// The identity of the folder at `root`.
    pub(crate) fn of(root: &Path) -> io::Result<Self> {
        fs::metadata(root).map(|about| Self::from(&about))
    }

    /// Whether both are one folder. The number of a device may change when the machine starts; an inode may
    /// be used again after its folder was removed. The time of creation distinguishes both cases.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let born = match (self.born, other.born) {
            (Some(one), Some(other)) => one == other,
            (None, _) | (_, None) => self.device == other.device,
        };
        self.inode == other.inode && born
    }
}

impl From<&fs::Metadata> for FolderIdentity {
    fn from(about: &fs::Metadata) -> Self {
        let born = about.created().ok().map(DateTime::from);
        Self { device: about.dev(), inode: about.ino(), born }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_was_removed_and_made_again_is_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir(&root).unwrap();
        let first = FolderIdentity::of(&root).unwrap();
        assert!(first.is_same(&FolderIdentity::of(&root).unwrap()));
        fs::remove_dir(&root).unwrap();
        fs::create_dir(&root).unwrap();
        assert!(!first.is_same(&FolderIdentity::of(&root).unwrap()));
    }

    #[test]
    fn a_device_may_change_its_number_where_the_time_of_creation_is_known() {
        let born = Some(Utc::now());
        let one = FolderIdentity { device: 1, inode: 7, born };
        assert!(one.is_same(&FolderIdentity { device: 2, ..one.clone() }));
        assert!(!one.is_same(&FolderIdentity { inode: 8, ..one.clone() }));
        let old = FolderIdentity { born: None, ..one.clone() };
        assert!(old.is_same(&one));
        assert!(!old.is_same(&FolderIdentity { device: 2, ..one }));
    }
}
