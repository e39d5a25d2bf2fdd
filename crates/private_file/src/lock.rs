//! Lock files: `flock` on a file of its own, released by the system when its process exits.

use std::fs::{File, TryLockError};
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, openat};

/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(5);

/// Why a lock is not acquired.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process held the lock the whole time.
    #[error("another process holds the lock")]
    Busy,
    /// The system refuses to lock the file.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Opens a lock file, and creates it with mode 0600 if it does not exist. Refuses a symbolic link.
pub fn open_lock_at(folder: impl AsFd, name: impl rustix::path::Arg) -> io::Result<File> {
    let flags = OFlags::RDWR
        | OFlags::CREATE
        | OFlags::NOFOLLOW
        | OFlags::NONBLOCK
        | OFlags::NOCTTY
        | OFlags::CLOEXEC;
    Ok(File::from(openat(folder, name, flags, Mode::RUSR | Mode::WUSR)?))
}

/// Locks the file for this process alone, and tries for up to `wait`.
pub fn lock_within(file: &File, wait: Duration) -> Result<(), LockError> {
    let until = Instant::now() + wait;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if Instant::now() < until => std::thread::sleep(PAUSE),
            Err(TryLockError::WouldBlock) => return Err(LockError::Busy),
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
    }
}
