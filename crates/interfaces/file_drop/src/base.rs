//! A folder of requests, opened: ours, private, reached without a link, and answered by us alone.
//!
//! What is not so is not used, and nothing in it is read, written or moved.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags, Stat, fchmod, flock, fstat, mkdirat,
    openat, statat,
};
use rustix::io::Errno;

use crate::settings::{Absent, Exposed, RequestFolder};

/// Most entries of a folder that are looked at. Of more, some are left out until others are
/// deleted.
pub const ENTRIES_MAX: usize = 100_000;

/// A folder of requests that can be used.
pub(crate) struct Base {
    pub(crate) descriptor: OwnedFd,
    identity: (u64, u64),
}

/// Why it cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unusable {
    #[error("it is not there")]
    Absent,
    #[error("somebody else answers what is in it")]
    Taken,
    #[error("{0}")]
    Wrong(String),
}

impl Base {
    /// Opens it, makes it if it may, and makes sure that it is only ours to answer.
    pub(crate) fn open(
        project: &Path,
        folder: &RequestFolder,
        owner: u32,
    ) -> Result<Self, Unusable> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut descriptor = openat(CWD, project, flags, Mode::empty()).map_err(unusable)?;
        for part in folder.path.components() {
            let name = part.as_os_str();
            descriptor = match open_folder(&descriptor, name) {
                Err(Errno::NOENT) if folder.absent == Absent::Make => {
                    match mkdirat(&descriptor, name, Mode::RWXU) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(error) => return Err(unusable(error)),
                    }
                    open_folder(&descriptor, name)
                }
                opened => opened,
            }
            .map_err(unusable)?;
        }
        let about = fstat(&descriptor).map_err(unusable)?;
        check_owner(&about, owner).map_err(Unusable::Wrong)?;
        if about.st_mode & 0o077 != 0 {
            match folder.exposed {
                Exposed::Close => fchmod(&descriptor, Mode::RWXU).map_err(unusable)?,
                Exposed::Refuse => return Err(Unusable::Wrong(exposed(&about))),
            }
        }
        // Held as long as it is open, and let go of by the system whatever happens to us. Where
        // folders cannot be locked, as on some networks, two that answer at a time do no harm: the
        // same order has the same key.
        if flock(&descriptor, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
            return Err(Unusable::Taken);
        }
        Ok(Self { descriptor, identity: (about.st_dev, about.st_ino) })
    }

    /// Whether this is still the folder that is found there.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|about| (about.st_dev, about.st_ino) == self.identity)
    }
}

/// Opens a folder in another, which is no link.
pub(crate) fn open_folder(
    parent: &OwnedFd,
    name: impl rustix::path::Arg,
) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty())
}

/// Names in a folder, `.` and `..` aside, and whether these are all.
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
        names.push(std::ffi::OsStr::from_bytes(name).to_owned());
    }
    Ok((names, true))
}

pub(crate) fn check_owner(about: &Stat, owner: u32) -> Result<(), String> {
    if about.st_uid == owner {
        return Ok(());
    }
    Err(format!("it belongs to user {}, not to user {owner}: chown it", about.st_uid))
}

/// Nobody else may write to it.
pub(crate) fn check_mode(about: &Stat) -> Result<(), String> {
    if about.st_mode & 0o022 == 0 {
        return Ok(());
    }
    let mode = about.st_mode & 0o7777;
    Err(format!("others may write to it (mode {mode:04o}): `chmod go-w` it"))
}

pub(crate) fn is_folder(about: &Stat) -> bool {
    FileType::from_raw_mode(about.st_mode) == FileType::Directory
}

fn exposed(about: &Stat) -> String {
    let mode = about.st_mode & 0o7777;
    format!("others may look into it (mode {mode:04o}): `chmod 700` it if it is yours")
}

fn unusable(error: Errno) -> Unusable {
    match error {
        Errno::NOENT => Unusable::Absent,
        // With both flags, a link is no folder.
        Errno::NOTDIR | Errno::LOOP => Unusable::Wrong("it is a link, or no folder".to_owned()),
        other => Unusable::Wrong(other.to_string()),
    }
}
