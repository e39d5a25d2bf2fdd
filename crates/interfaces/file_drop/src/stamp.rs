//! How one state of a file is told from another without reading it.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::Stat;

/// The coarsest clock that a file system may have.
const TICK_MAX_NS: i128 = 2_000_000_000;

/// One state of a file: whatever happens to it, this changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) mark: Mark,
    device: u64,
    changed_ns: i128,
}

/// A file by what it is and what was last written to it. Stays as it is when the file is renamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Mark {
    inode: u64,
    bytes: i128,
    modified_ns: i128,
}

impl Stamp {
    pub(crate) fn of(about: &Stat) -> Self {
        Self {
            mark: Mark {
                inode: about.st_ino,
                bytes: about.st_size.into(),
                modified_ns: ns(about.st_mtime, about.st_mtime_nsec),
            },
            device: about.st_dev,
            changed_ns: ns(about.st_ctime, about.st_ctime_nsec),
        }
    }

    /// Whether a change right after `looked_ns` would show. Clocks of file systems are coarse, and the
    /// number of a file that is gone is given to the next: one that is replaced within a tick by one
    /// of the same size looks the same.
    pub(crate) fn is_sure(&self, looked_ns: i128) -> bool {
        looked_ns - self.changed_ns > TICK_MAX_NS
    }

    /// When it was last written to.
    pub(crate) fn modified_ns(&self) -> i128 {
        self.mark.modified_ns
    }
}

impl Mark {
    /// Whether it was not written after another file was. Within one tick of the clock nobody can
    /// tell: a request is often answered in the tick in which it was written.
    pub(crate) fn is_no_younger_than(self, other: &Stamp) -> bool {
        self.modified_ns <= other.modified_ns()
    }

    /// As a response tells it.
    pub(crate) fn text(self) -> String {
        format!("{}-{}-{}", self.inode, self.bytes, self.modified_ns)
    }

    /// Reads what [`Mark::text`] wrote.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '-');
        Some(Self {
            inode: parts.next()?.parse().ok()?,
            bytes: parts.next()?.parse().ok()?,
            modified_ns: parts.next()?.parse().ok()?,
        })
    }
}

/// The time of day, as file systems count it.
pub(crate) fn now_ns() -> i128 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i128::try_from(now.as_nanos()).unwrap_or(i128::MAX)
}

fn ns(seconds: impl Into<i128>, nanos: impl Into<i128>) -> i128 {
    seconds.into() * 1_000_000_000 + nanos.into()
}
