//! Tells whether entries of a folder may have come or gone since an earlier look, with one call of the system.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// How old the last change of a folder must be to be told from a later one: file systems record times in steps, some of
/// two seconds.
const SETTLED_AFTER: Duration = Duration::from_secs(3);

/// Which folder is at a path, and when it was last changed. The time is that of the inode, which no program can set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FolderStamp {
    device: u64,
    inode: u64,
    changed: (i64, i64),
}

impl FolderStamp {
    /// `None` if a later change might look the same. Take it before the look at the entries.
    pub(crate) fn of(folder: &Path, now: SystemTime) -> Option<Self> {
        let found = fs::metadata(folder).ok()?;
        let changed = (found.ctime(), found.ctime_nsec());
        let since = Duration::new(changed.0.try_into().ok()?, changed.1.try_into().ok()?);
        let age = now.duration_since(SystemTime::UNIX_EPOCH.checked_add(since)?).ok()?;
        let stamp = Self { device: found.dev(), inode: found.ino(), changed };
        (age >= SETTLED_AFTER).then_some(stamp)
    }
}

/// A time at which everything that was made by now has settled.
#[cfg(test)]
pub(crate) fn later() -> SystemTime {
    SystemTime::now() + 2 * SETTLED_AFTER
}
