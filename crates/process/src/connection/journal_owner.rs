//! The process that owns a journal. The system releases the lock when that process ends, however it ends:
//! the process id in the lock file counts only while the lock is held.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bytes of a lock file that are read: more than the longest process id has.
const LOCK_BYTES_MAX: u64 = 32;

/// Id of the process that owns the journal at `path`, if there is one.
pub(super) fn owner_of(path: &Path) -> Option<u32> {
    let lock_path = lock_path(path);
    if !fs::symlink_metadata(&lock_path).ok()?.is_file() {
        return None;
    }
    let lock = File::open(&lock_path).ok()?;
    match lock.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            lock.take(LOCK_BYTES_MAX).read_to_string(&mut text).ok()?;
            text.trim().parse().ok()
        }
        Ok(()) | Err(TryLockError::Error(_)) => None,
    }
}

/// Whether another process owns the journal at `path`. A command that reads it holds the lock too, and the file may
/// still name a process that is gone.
pub(super) fn is_owned_by_another(path: &Path) -> bool {
    let is_another = |owner: u32| {
        owner != std::process::id() && Path::new("/proc").join(owner.to_string()).exists()
    };
    owner_of(path).is_some_and(is_another)
}

/// The file of the lock of the journal at `path`.
fn lock_path(path: &Path) -> PathBuf {
    let mut lock_path = path.as_os_str().to_owned();
    lock_path.push(".lock");
    lock_path.into()
}

/// Whether a process is stopped, as by SIGSTOP.
pub(super) fn is_stopped(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name of the program, in brackets, may hold anything.
    let state = status.rsplit(')').next().unwrap_or_default();
    state.trim_start().starts_with(['T', 't'])
}

/// Whether this process runs and belongs to the user.
pub(super) fn is_users(pid: u32) -> bool {
    let owner = fs::metadata(format!("/proc/{pid}")).map(|about| about.uid());
    owner.is_ok_and(|owner| user().is_ok_and(|user| user == owner))
}

/// Id of the user that runs this process.
pub(super) fn user() -> io::Result<u32> {
    Ok(fs::metadata("/proc/self")?.uid())
}
