//! The process that owns a journal. The system lets go of its lock when that process ends, however it
//! ends: what is written in the file beside it counts only as long as the lock is held.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// How much of a lock is read, in bytes: more than the longest process id.
const LOCK_BYTES_MAX: u64 = 32;

/// The process that owns the journal at `path`, if one does.
pub(super) fn of(path: &Path) -> Option<u32> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".lock");
    if !fs::symlink_metadata(&beside).ok()?.is_file() {
        return None;
    }
    let lock = File::open(&beside).ok()?;
    match lock.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            lock.take(LOCK_BYTES_MAX).read_to_string(&mut text).ok()?;
            text.trim().parse().ok()
        }
        Ok(()) | Err(TryLockError::Error(_)) => None,
    }
}

/// Whether this process is there and belongs to the user.
pub(super) fn is_ours(pid: u32) -> bool {
    let theirs = fs::metadata(format!("/proc/{pid}")).map(|about| about.uid());
    theirs.is_ok_and(|theirs| user().is_ok_and(|user| user == theirs))
}

/// The user this process belongs to.
pub(super) fn user() -> io::Result<u32> {
    Ok(fs::metadata("/proc/self")?.uid())
}
