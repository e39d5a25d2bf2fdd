//! The lock on the key file: one process changes the file at a time.
//!
//! A change is written to a new file, synced, and renamed over the old one. A crash leaves the old file
//! or the new one, and at most a `.new` file that the next writer removes.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use antiphon_private_file::{LockError, create_new_at, lock_within, open_lock_at};
use rustix::fs::{AtFlags, fstat, fsync, renameat, unlinkat};
use rustix::io::Errno;

use super::file_state::{FileState, OpenState};
use super::location::FileLocation;
use crate::ring_error::{KeyRingError, unusable};

/// How long a change waits for another process that holds the lock.
pub const LOCK_WAIT: Duration = Duration::from_secs(5);

/// Permission to change the key file. Dropping it releases the lock.
#[derive(Debug)]
pub(crate) struct Lock<'a> {
    location: &'a FileLocation,
    folder: OwnedFd,
    _file: File,
}

impl<'a> Lock<'a> {
    /// Waits for the lock, up to [`LOCK_WAIT`]. Creates the folder if it does not exist.
    pub(crate) fn acquire(location: &'a FileLocation) -> Result<Self, KeyRingError> {
        let folder = location.create_folder()?;
        let lock = open_lock_at(&folder, location.sibling_name(".lock"))
            .map_err(|error| unusable(location.path())(format!("its `.lock`: {error}")))?;
        match lock_within(&lock, LOCK_WAIT) {
            Ok(()) => Ok(Self { location, folder, _file: lock }),
            Err(LockError::Busy) => {
                Err(KeyRingError::Busy { path: location.path().display().to_string() })
            }
            Err(LockError::Io(error)) => Err(unusable(location.path())(error.to_string())),
        }
    }

    /// Reads the file; `None` when it does not exist.
    pub(crate) fn read(&self) -> Result<Option<(OpenState, Vec<u8>)>, KeyRingError> {
        self.location.read_in(&self.folder)
    }

    /// Replaces the file. It is durable when this returns; after an error, the file is the old one or
    /// the new one.
    pub(crate) fn write(&self, text: &[u8]) -> Result<OpenState, KeyRingError> {
        let temporary = self.location.sibling_name(".new");
        self.write_via(&temporary, text).map_err(|error| {
            // It may not exist.
            let _ = unlinkat(&self.folder, &temporary, AtFlags::empty());
            unusable(self.location.path())(error.to_string())
        })
    }

    fn write_via(&self, temporary: &OsStr, text: &[u8]) -> io::Result<OpenState> {
        // Left by a crash.
        match unlinkat(&self.folder, temporary, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let file = create_new_at(&self.folder, temporary, text)?;
        renameat(&self.folder, temporary, &self.folder, self.location.name())?;
        fsync(&self.folder)?;
        // Read after the rename, which changes it.
        let state = FileState::of(&fstat(&file)?);
        Ok(OpenState::new(state, file))
    }
}
