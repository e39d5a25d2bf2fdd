//! How one state of the file is told from another without reading it.

use std::fs::File;

use rustix::fs::Stat;

/// One state of a file: whatever happens to it, this changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    identity: (u64, u64),
    bytes: i128,
    modified: (i128, i128),
    /// Also says that the mode or the owner is another.
    changed: (i128, i128),
}

/// A file as it was. It is kept open: as long as it is, no other can have its inode.
#[derive(Debug)]
pub(crate) struct Sight {
    pub(crate) stamp: Stamp,
    _file: File,
}

impl Stamp {
    pub(crate) fn of(about: &Stat) -> Self {
        Self {
            identity: (about.st_dev, about.st_ino),
            bytes: about.st_size.into(),
            modified: (about.st_mtime.into(), about.st_mtime_nsec.into()),
            changed: (about.st_ctime.into(), about.st_ctime_nsec.into()),
        }
    }
}

impl Sight {
    pub(crate) fn new(stamp: Stamp, file: File) -> Self {
        Self { stamp, _file: file }
    }
}
