//! Detects a change of the file without reading it.

use std::fs::File;

use rustix::fs::Stat;

/// The state of a file. Every change of content, mode, owner or identity gives another state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileState {
    identity: (u64, u64),
    bytes: i128,
    modified: (i128, i128),
    /// Also changes with the mode and the owner.
    changed: (i128, i128),
}

/// The state of a file that is kept open: while it is, no other file can get its inode.
#[derive(Debug)]
pub(crate) struct OpenState {
    pub(crate) state: FileState,
    _file: File,
}

impl FileState {
    pub(crate) fn of(stat: &Stat) -> Self {
        Self {
            identity: (stat.st_dev, stat.st_ino),
            bytes: stat.st_size.into(),
            modified: (stat.st_mtime.into(), stat.st_mtime_nsec.into()),
            changed: (stat.st_ctime.into(), stat.st_ctime_nsec.into()),
        }
    }
}

impl OpenState {
    pub(crate) fn new(state: FileState, file: File) -> Self {
        Self { state, _file: file }
    }
}
