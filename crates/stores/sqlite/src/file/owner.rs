//! The lock of a journal: one owner process at a time.
//!
//! A lock on a file next to the journal, which the operating system releases when the process ends,
//! however it ends. The file holds the id of the owner, for the error of the next process.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::journal::OpenError;

/// A killed process may hold the lock for a moment: until it is gone, and the child process that
/// it was about to start.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// How often to try.
const RETRY_EVERY: Duration = Duration::from_millis(20);

/// The ownership of a journal. Dropping it releases the lock.
#[derive(Debug)]
pub struct Owner {
    _lock: File,
}

impl Owner {
    /// Takes the lock of the journal at `path`, or returns the id of the owner. Waits a moment for an owner
    /// that is about to end.
    pub fn claim(path: &Path) -> Result<Self, OpenError> {
        Self::claim_within(path, WAIT_MAX)?.ok_or_else(|| OpenError::Owned {
            path: path.to_owned(),
            pid: owner_id(&lock_path(path)),
        })
    }

    /// Takes the lock of the journal at `path` if no process has it. Does not wait.
    pub fn try_claim(path: &Path) -> Result<Option<Self>, OpenError> {
        Self::claim_within(path, Duration::ZERO)
    }

    fn claim_within(path: &Path, wait: Duration) -> Result<Option<Self>, OpenError> {
        let lock_file = lock_path(path);
        let unusable = |error: std::io::Error| OpenError::Unusable {
            path: path.to_owned(),
            reason: format!("{}: {error}", lock_file.display()),
        };
        // A symbolic link from a clone could lead to any file of the user.
        if fs::symlink_metadata(&lock_file).is_ok_and(|about| !about.is_file()) {
            return Err(unusable(std::io::Error::other("it is not a file")));
        }
        // Not truncated: it may hold the id of another owner.
        let mut lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&lock_file)
            .map_err(unusable)?;
        match wait_for(&lock, wait) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(unusable(error)),
        }
        lock.set_len(0).map_err(unusable)?;
        match writeln!(lock, "{}", std::process::id()) {
            // The lock holds without the id: tasks can be pruned to make room.
            Err(error) if error.kind() != ErrorKind::StorageFull => Err(unusable(error)),
            Ok(()) | Err(_) => Ok(Some(Self { _lock: lock })),
        }
    }

    /// Id of the process that owns the journal at `path`. `None` when no process does.
    pub(crate) fn of(path: &Path) -> Option<String> {
        let lock_file = lock_path(path);
        let lock = File::open(&lock_file).ok()?;
        match lock.try_lock_shared() {
            Err(TryLockError::WouldBlock) => Some(owner_id(&lock_file)),
            Ok(()) | Err(TryLockError::Error(_)) => None,
        }
    }
}

fn wait_for(lock: &File, wait: Duration) -> Result<(), TryLockError> {
    let start = Instant::now();
    loop {
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) if start.elapsed() < wait => {
                thread::sleep(RETRY_EVERY);
            }
            outcome => return outcome,
        }
    }
}

fn owner_id(lock: &Path) -> String {
    let pid = fs::read_to_string(lock).unwrap_or_default().trim().to_owned();
    if pid.is_empty() { "unknown".to_owned() } else { pid }
}

fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}
