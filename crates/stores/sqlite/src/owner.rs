//! One owner at a time.
//!
//! A lock on a file beside the journal, which the system lets go of when the process ends,
//! however it ends. Who has it is written inside, for the one who comes too late.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::journal::OpenError;

/// A process that was killed may hold on for a moment: until it is gone, or its last child that
/// it was about to start.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// How often to look.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The right to a journal. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Owner {
    _lock: File,
}

impl Owner {
    /// Takes the right to the journal at `path`, or says who has it.
    pub(crate) fn claim(path: &Path) -> Result<Self, OpenError> {
        let beside = lock_path(path);
        let unusable = |error: std::io::Error| OpenError::Unusable {
            path: path.to_owned(),
            reason: format!("{}: {error}", beside.display()),
        };
        // A link could lead to any file of the user's: one that came with a clone would.
        if fs::symlink_metadata(&beside).is_ok_and(|about| !about.is_file()) {
            return Err(unusable(std::io::Error::other("it is not a file")));
        }
        // Not truncated: it may be somebody else's.
        let mut lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&beside)
            .map_err(unusable)?;
        match wait_for(&lock) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(OpenError::Owned { path: path.to_owned(), pid: written_in(&beside) });
            }
            Err(TryLockError::Error(error)) => return Err(unusable(error)),
        }
        lock.set_len(0).map_err(unusable)?;
        writeln!(lock, "{}", std::process::id()).map_err(unusable)?;
        Ok(Self { _lock: lock })
    }

    /// The process that has the journal at `path`, if one has.
    pub(crate) fn of(path: &Path) -> Option<String> {
        let beside = lock_path(path);
        let lock = File::open(&beside).ok()?;
        match lock.try_lock_shared() {
            Err(TryLockError::WouldBlock) => Some(written_in(&beside)),
            Ok(()) | Err(TryLockError::Error(_)) => None,
        }
    }
}

fn wait_for(lock: &File) -> Result<(), TryLockError> {
    let start = Instant::now();
    loop {
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) if start.elapsed() < WAIT_MAX => {
                thread::sleep(LOOK_EVERY);
            }
            outcome => return outcome,
        }
    }
}

fn written_in(lock: &Path) -> String {
    let pid = fs::read_to_string(lock).unwrap_or_default().trim().to_owned();
    if pid.is_empty() { "unknown".to_owned() } else { pid }
}

fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}
