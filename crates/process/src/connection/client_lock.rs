//! The processes that take the journal when its owner ends. Each holds a shared lock while it is a client, and the
//! system ends it with the process: so an owner that is done knows whether another process goes on.

use std::fs::{File, TryLockError};
use std::io;

use antiphon_project::project::Project;

/// The lock of all clients, in the state folder.
const CLIENTS: &str = "clients.lock";

/// This process takes the journal when its owner ends.
pub(crate) struct ClientLock {
    _lock: File,
}

impl ClientLock {
    /// Without it, when the state folder cannot be written, the owner does not wait for this process: then none needs
    /// the other.
    pub(crate) fn hold(project: &Project) -> Option<Self> {
        let lock = open(project).and_then(|lock| match lock.try_lock_shared() {
            Ok(()) => Ok(lock),
            Err(TryLockError::WouldBlock) => {
                // Another process looks whether it is held, which takes a moment.
                lock.lock_shared()?;
                Ok(lock)
            }
            Err(TryLockError::Error(error)) => Err(error),
        });
        match lock {
            Ok(lock) => Some(Self { _lock: lock }),
            Err(error) => {
                tracing::debug!(%error, "the owner is not told of this process");
                None
            }
        }
    }

    /// Whether a process holds one.
    pub(crate) fn is_held(project: &Project) -> bool {
        let lock = File::open(project.state().join(CLIENTS));
        lock.is_ok_and(|lock| matches!(lock.try_lock(), Err(TryLockError::WouldBlock)))
    }
}

fn open(project: &Project) -> io::Result<File> {
    antiphon_private_file::open_lock_at(File::open(project.state())?, CLIENTS)
}
