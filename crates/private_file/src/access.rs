//! Checks that a file or folder belongs to this user alone.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, fstat, openat};
use rustix::io::Errno;
use rustix::process::geteuid;

/// Why a file or folder is not used.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The system cannot open it. `NotFound` when it does not exist.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The last component of the path is a symbolic link.
    #[error("it is a link: put the file itself here")]
    Link,
    /// It is a folder, a pipe, a socket or a device.
    #[error("it is not a regular file")]
    NotRegular,
    /// It belongs to another user.
    #[error("it belongs to user {owner}, not to user {user}")]
    Foreign {
        /// User id of the owner.
        owner: u32,
        /// Effective user id of this process.
        user: u32,
    },
    /// Its mode allows other users more than [`PrivateEntry`] permits.
    #[error("other users can access it (mode {mode:04o}): set its mode to {wanted:o}")]
    Exposed {
        /// The permission bits it has.
        mode: u32,
        /// The permission bits it should have.
        wanted: u32,
    },
}

/// What is checked, and so which permission bits are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrivateEntry {
    /// Group and others have no access: 0600.
    File,
    /// Group and others cannot write. They may list the names in it: 0700 or 0755.
    Folder,
}

impl From<Errno> for AccessError {
    fn from(error: Errno) -> Self {
        match error {
            Errno::LOOP => Self::Link,
            other => Self::Io(other.into()),
        }
    }
}

impl From<AccessError> for io::Error {
    fn from(error: AccessError) -> Self {
        match error {
            AccessError::Io(error) => error,
            refused @ (AccessError::Link
            | AccessError::NotRegular
            | AccessError::Foreign { .. }
            | AccessError::Exposed { .. }) => Self::other(refused),
        }
    }
}

/// Checks owner and permission bits.
pub fn check(stat: &Stat, kind: PrivateEntry) -> Result<(), AccessError> {
    let (owner, user) = (stat.st_uid, geteuid().as_raw());
    if owner != user {
        return Err(AccessError::Foreign { owner, user });
    }
    let mode = stat.st_mode & 0o7777;
    let (forbidden, wanted) = match kind {
        PrivateEntry::File => (0o077, 0o600),
        PrivateEntry::Folder => (0o022, 0o700),
    };
    if mode & forbidden != 0 {
        return Err(AccessError::Exposed { mode, wanted });
    }
    Ok(())
}

/// Opens a private file for reading. Follows links in the folders of the path, refuses one at its end.
pub fn open(path: &Path) -> Result<File, AccessError> {
    open_at(CWD, path).map(|(file, _)| file)
}

/// Opens a private file of an open folder for reading. The returned state is that of the opened file.
pub fn open_at(
    folder: impl AsFd,
    name: impl rustix::path::Arg,
) -> Result<(File, Stat), AccessError> {
    // Without NONBLOCK, opening a pipe that has no writer would block.
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = openat(folder, name, flags, Mode::empty())?;
    let stat = fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(AccessError::NotRegular);
    }
    check(&stat, PrivateEntry::File)?;
    Ok((File::from(file), stat))
}
