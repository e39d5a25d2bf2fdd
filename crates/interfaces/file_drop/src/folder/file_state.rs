//! Detects a change of a file without reading it.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::Stat;

/// The coarsest timestamps that a file system may have.
const TICK_MAX_NS: i128 = 2_000_000_000;

/// The state of a file. Every change of content, name, mode or owner gives another state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileState {
    pub(crate) file_id: FileId,
    device: u64,
    changed_ns: i128,
}

/// Identity and last modification of a file. Renaming the file keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FileId {
    inode: u64,
    bytes: i128,
    modified_ns: i128,
}

impl FileState {
    pub(crate) fn of(stat: &Stat) -> Self {
        Self {
            file_id: FileId {
                inode: stat.st_ino,
                bytes: stat.st_size.into(),
                modified_ns: ns(stat.st_mtime, stat.st_mtime_nsec),
            },
            device: stat.st_dev,
            changed_ns: ns(stat.st_ctime, stat.st_ctime_nsec),
        }
    }

    /// Whether a change right after `looked_ns` would give another state. Timestamps of file
    /// systems are coarse and inode numbers are reused: a file that is replaced within one tick by
    /// one of the same size has the same state.
    pub(crate) fn is_sure(&self, looked_ns: i128) -> bool {
        looked_ns - self.changed_ns > TICK_MAX_NS
    }

    pub(crate) fn modified_ns(&self) -> i128 {
        self.file_id.modified_ns
    }
}

impl FileId {
    /// Whether this file was modified no later than the other. Within one tick both count as no
    /// later: a request is often answered in the tick in which it was written.
    pub(crate) fn is_no_younger_than(self, other: &FileState) -> bool {
        self.modified_ns <= other.modified_ns()
    }

    /// The form in a response.
    pub(crate) fn text(self) -> String {
        format!("{}-{}-{}", self.inode, self.bytes, self.modified_ns)
    }

    /// Parses the form in a response.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '-');
        Some(Self {
            inode: parts.next()?.parse().ok()?,
            bytes: parts.next()?.parse().ok()?,
            modified_ns: parts.next()?.parse().ok()?,
        })
    }
}

/// The current time in nanoseconds, as in timestamps of files.
pub(crate) fn now_ns() -> i128 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i128::try_from(now.as_nanos()).unwrap_or(i128::MAX)
}

fn ns(seconds: impl Into<i128>, nanos: impl Into<i128>) -> i128 {
    seconds.into() * 1_000_000_000 + nanos.into()
}
