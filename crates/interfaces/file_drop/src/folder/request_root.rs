//! A folder of requests, opened: owned by this user, reached without a symbolic link, and locked. One that
//! the user trusts is made private.
//!
//! Any other folder is not used: nothing in it is read, written or moved.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags, RenameFlags, Stat, fchmod, flock,
    fstat, mkdirat, openat, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

use crate::folder_trust::FolderTrust;
use crate::settings::{RequestFolder, WhenAbsent};

/// Most entries of a folder that are read. Above the limit, some are ignored until others are
/// deleted.
pub const ENTRIES_MAX: usize = 100_000;

/// An open folder of requests, locked by this process.
pub(crate) struct RequestRoot {
    pub(crate) descriptor: OwnedFd,
    /// Whether the group may write to what is in it.
    pub(crate) group_writes: GroupWrites,
    identity: (u64, u64),
}

/// What it means that the group of a file may write to it, as with a umask of 002.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GroupWrites {
    /// Nothing: the file is in a folder that no other user may enter, and none could when it was opened.
    Harmless,
    /// Another user may have written it.
    Refused,
}

impl GroupWrites {
    /// By the mode of the folder that holds the others.
    pub(crate) fn within(folder: &Stat) -> Self {
        if folder.st_mode & 0o077 != 0 { Self::Refused } else { Self::Harmless }
    }
}

/// Why a folder of requests is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RootError {
    #[error("it does not exist")]
    Absent,
    #[error("another process answers its requests")]
    Busy,
    #[error("{0}")]
    Unusable(String),
}

impl RequestRoot {
    /// Opens the folder, creates it if the settings say so, checks its owner, takes access from other users
    /// if it is trusted, and locks it.
    pub(crate) fn open(
        project: &Path,
        folder: &RequestFolder,
        owner: u32,
        trust: &FolderTrust,
    ) -> Result<Self, RootError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut descriptor = openat(CWD, project, flags, Mode::empty()).map_err(unusable)?;
        let mut is_created = false;
        let mut parts = folder.path.components().peekable();
        while let Some(part) = parts.next() {
            let name = part.as_os_str();
            is_created = false;
            descriptor = match open_folder(&descriptor, name) {
                Err(Errno::NOENT) if folder.absent == WhenAbsent::Create => {
                    match create_folder(&descriptor, name).map_err(unusable)? {
                        Some(created) => {
                            is_created = true;
                            if let Some(below) = parts.peek() {
                                ignore(&created, below.as_os_str()).map_err(unusable)?;
                            }
                            Ok(created)
                        }
                        None => open_folder(&descriptor, name),
                    }
                }
                opened => opened,
            }
            .map_err(unusable)?;
        }
        let stat = fstat(&descriptor).map_err(unusable)?;
        check_owner(&stat, owner).map_err(RootError::Unusable)?;
        // Before it is made private: another user may have opened what is in it.
        let group_writes = GroupWrites::within(&stat);
        let path = project.join(&folder.path);
        if is_created {
            trust.created(&path, descriptor.as_fd());
        }
        if stat.st_mode & 0o077 != 0 && trust.is_trusted(&path) {
            fchmod(&descriptor, Mode::RWXU).map_err(unusable)?;
        }
        // The system releases the lock when the descriptor is closed or the process ends. Some
        // network file systems cannot lock folders; two services at the same time do no harm there,
        // because the same order has the same key.
        if flock(&descriptor, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
            return Err(RootError::Busy);
        }
        Ok(Self { descriptor, group_writes, identity: (stat.st_dev, stat.st_ino) })
    }

    /// Whether the folder at `path` is still this one.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| (stat.st_dev, stat.st_ino) == self.identity)
    }
}

/// Creates a private subfolder and opens it; `None` if there is one by now. The folder gets its name when it
/// is open: what another process puts at that name is never taken for it.
fn create_folder(parent: &OwnedFd, name: &OsStr) -> Result<Option<OwnedFd>, Errno> {
    let mut unnamed = OsString::from(format!(".{}.", std::process::id()));
    unnamed.push(name);
    match unlinkat(parent, &unnamed, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error),
    }
    mkdirat(parent, &unnamed, Mode::RWXU)?;
    let created = open_folder(parent, &unnamed)?;
    match renameat_with(parent, &unnamed, parent, name, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(Some(created)),
        // The file system does not know the flag. An empty folder at the name is replaced.
        Err(Errno::INVAL | Errno::NOSYS) => {
            renameat(parent, &unnamed, parent, name).map(|()| Some(created))
        }
        Err(Errno::EXIST) => unlinkat(parent, &unnamed, AtFlags::REMOVEDIR).map(|()| None),
        Err(error) => Err(error),
    }
}

/// Opens a subfolder. A symbolic link is an error.
pub(crate) fn open_folder(
    parent: &OwnedFd,
    name: impl rustix::path::Arg,
) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty())
}

/// The names in a folder without `.` and `..`, and whether the list is complete.
pub(crate) fn names(folder: &OwnedFd) -> Result<(Vec<OsString>, bool), Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        if names.len() >= ENTRIES_MAX {
            return Ok((names, false));
        }
        names.push(OsStr::from_bytes(name).to_owned());
    }
    Ok((names, true))
}

pub(crate) fn check_owner(stat: &Stat, owner: u32) -> Result<(), String> {
    if stat.st_uid == owner {
        return Ok(());
    }
    Err(format!("it belongs to user {}, not to user {owner}: chown it", stat.st_uid))
}

/// Checks that others cannot write, and that the group cannot where that matters.
pub(crate) fn check_mode(stat: &Stat, group_writes: GroupWrites) -> Result<(), String> {
    let refused = match group_writes {
        GroupWrites::Harmless => 0o002,
        GroupWrites::Refused => 0o022,
    };
    if stat.st_mode & refused == 0 {
        return Ok(());
    }
    let mode = stat.st_mode & 0o7777;
    Err(format!("others may write to it (mode {mode:04o}): `chmod go-w` it"))
}

pub(crate) fn is_folder(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

fn unusable(error: Errno) -> RootError {
    match error {
        Errno::NOENT => RootError::Absent,
        // With both flags, a link is reported as no folder.
        Errno::NOTDIR | Errno::LOOP => RootError::Unusable("it is a link, or no folder".to_owned()),
        other => RootError::Unusable(other.to_string()),
    }
}

/// Keeps the requests below a folder that was created for them out of commits.
fn ignore(created: &OwnedFd, below: &OsStr) -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = openat(created, ".gitignore", flags, Mode::RUSR | Mode::WUSR)?;
    let line = [below.as_encoded_bytes(), b"/\n"].concat();
    rustix::io::write(&file, &line).map(drop)
}
