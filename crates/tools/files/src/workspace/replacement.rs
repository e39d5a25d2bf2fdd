//! Replaces a file atomically.
//!
//! The new contents are written to an unnamed file, synced, and then linked over the old name in one
//! step. After an interruption at any point, either the old or the new file exists. Permissions are
//! kept, and the owner where the system permits. Extended attributes are not kept, and other hard
//! links to the old file keep its contents.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::PoisonError;

use rustix::fs::{
    AtFlags, CWD, Gid, Mode, OFlags, RenameFlags, ResolveFlags, Stat, Uid, fchmod, fchown, fsync,
    linkat, mkdirat, openat, openat2, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use uuid::Uuid;

use super::opened_path::link_of;
use super::{Identity, WriteTarget};

/// Permissions of a file that was not there before, less what the user's mask takes away.
const NEW_MODE: Mode = Mode::from_raw_mode(0o644);

/// Permissions of a folder that was not there before, less what the user's mask takes away.
const FOLDER_MODE: Mode = Mode::from_raw_mode(0o777);

/// Small parts are written together, in bytes.
const WRITE_BYTES: usize = 256 * 1024;

/// Result of a replacement.
#[derive(Debug)]
pub(crate) struct ReplacedFile {
    /// Identity of the new file.
    pub(crate) identity: Identity,
    /// Number of other hard links to the old file, which keep its contents.
    pub(crate) other_links: u64,
}

/// Why a file was not replaced. The file is unchanged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReplaceError {
    /// Another process changed, created or removed the file meanwhile.
    #[error("it changed while this call worked on it: read it again and repeat the change")]
    Changed,
    /// The disk is full.
    #[error("there is no room for it on the disk: free some, or tell the user")]
    NoRoom,
    /// The operating system denies it.
    #[error("the system does not permit writing there: choose another path, or tell the user")]
    Denied,
    /// Another error of the operating system.
    #[error("the system refused: {0}")]
    Io(io::Error),
}

pub(super) fn replace(
    place: &WriteTarget<'_>,
    contents: &[&[u8]],
    expected: Option<Identity>,
) -> Result<ReplacedFile, ReplaceError> {
    let inner = make_folders(place)?;
    let folder = inner.as_ref().map_or(place.as_fd(), OwnedFd::as_fd);
    let old = place.existing().map(|found| *found.stat());
    // A user who may not read the old file must not read the temporary one either.
    let mode = if old.is_some() { Mode::RUSR | Mode::WUSR } else { NEW_MODE };
    let mut draft = TemporaryFile::new(folder, mode)?;
    let mut writer = BufWriter::with_capacity(WRITE_BYTES, &draft.file);
    for part in contents {
        writer.write_all(part)?;
    }
    writer.flush()?;
    drop(writer);
    if let Some(old) = &old {
        copy_owner_and_mode(&draft.file, old)?;
    }
    fsync(&draft.file)?;
    let replacing = place.workspace.replacing.lock().unwrap_or_else(PoisonError::into_inner);
    match expected {
        None => draft.publish_new(place)?,
        Some(expected) => {
            draft.give_name()?;
            match statat(folder, &place.name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(now) if Identity::of(&now) == expected => draft.publish_over(place)?,
                Ok(_) | Err(Errno::NOENT) => return Err(ReplaceError::Changed),
                Err(error) => return Err(error.into()),
            }
        }
    }
    let identity = Identity::of_file(&draft.file)?;
    drop(replacing);
    // The name is durable only when the folder is. One that may not be read cannot be synced.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    // A failed sync is not an error: the file is replaced already.
    let _ = openat(folder, ".", flags, Mode::empty()).and_then(fsync);
    Ok(ReplacedFile { identity, other_links: old.map_or(0, |old| old.st_nlink.saturating_sub(1)) })
}

/// Creates the missing folders, each by the descriptor of its parent. `None` if none is missing.
fn make_folders(place: &WriteTarget<'_>) -> Result<Option<OwnedFd>, ReplaceError> {
    let mut inner: Option<OwnedFd> = None;
    for name in &place.missing {
        let outer = inner.as_ref().map_or(place.as_fd(), OwnedFd::as_fd);
        match mkdirat(outer, name, FOLDER_MODE) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let folder = openat2(outer, name, flags, Mode::empty(), resolve);
        inner = Some(match folder {
            // Another process created something else there.
            Err(Errno::LOOP | Errno::NOTDIR | Errno::NOENT) => return Err(ReplaceError::Changed),
            folder => folder?,
        });
    }
    Ok(inner)
}

/// Copies the owner and the permissions of the old file to `file`.
fn copy_owner_and_mode(file: &File, old: &Stat) -> Result<(), ReplaceError> {
    let (uid, gid) = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
    let owner_set = fchown(file, Some(uid), Some(gid)).is_ok();
    if !owner_set {
        // The file belongs to another user: keep at least its group, if this process is in it.
        let _ = fchown(file, None, Some(gid));
    }
    let mut mode = Mode::from_raw_mode(old.st_mode);
    if !owner_set {
        // Drop setuid and setgid bits, which would now act for another owner.
        mode -= Mode::SUID | Mode::SGID;
    }
    Ok(fchmod(file, mode)?)
}

/// A temporary file. On drop before publishing, it is removed.
struct TemporaryFile<'a> {
    file: File,
    folder: BorrowedFd<'a>,
    /// Temporary name, if it has one.
    name: Option<PathBuf>,
}

impl<'a> TemporaryFile<'a> {
    fn new(folder: BorrowedFd<'a>, mode: Mode) -> Result<Self, ReplaceError> {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        match openat(folder, ".", flags | OFlags::TMPFILE, mode) {
            Ok(file) => return Ok(Self { file: file.into(), folder, name: None }),
            // Not every file system supports unnamed files.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOSYS) => {}
            Err(error) => return Err(error.into()),
        }
        let name = temporary_name();
        let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let file = openat(folder, &name, flags, mode)?.into();
        Ok(Self { file, folder, name: Some(name) })
    }

    /// Links it to a temporary name, unless it has one.
    fn give_name(&mut self) -> Result<(), ReplaceError> {
        if self.name.is_none() {
            let name = temporary_name();
            self.link(&name)?;
            self.name = Some(name);
        }
        Ok(())
    }

    /// Publishes under a name that must not exist yet.
    fn publish_new(&mut self, place: &WriteTarget<'_>) -> Result<(), ReplaceError> {
        let published = match &self.name {
            None => self.link(&place.name),
            Some(name) => {
                let flags = RenameFlags::NOREPLACE;
                renameat_with(self.folder, name, self.folder, &place.name, flags)
            }
        };
        match published {
            Ok(()) => self.name = None,
            Err(Errno::EXIST) => return Err(ReplaceError::Changed),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Publishes over an existing name. Replaces a symlink, does not follow it.
    fn publish_over(&mut self, place: &WriteTarget<'_>) -> Result<(), ReplaceError> {
        if let Some(name) = &self.name {
            renameat(self.folder, name, self.folder, &place.name)?;
            self.name = None;
        }
        Ok(())
    }

    fn link(&self, name: impl rustix::path::Arg) -> Result<(), Errno> {
        let from = link_of(self.file.as_fd());
        linkat(CWD, from, self.folder, name, AtFlags::SYMLINK_FOLLOW)
    }
}

impl Drop for TemporaryFile<'_> {
    fn drop(&mut self) {
        if let Some(name) = self.name.take() {
            let _ = unlinkat(self.folder, name, AtFlags::empty());
        }
    }
}

/// An unguessable hidden name.
fn temporary_name() -> PathBuf {
    format!(".antiphon-{}.draft", Uuid::new_v4().simple()).into()
}

impl From<io::Error> for ReplaceError {
    fn from(error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(errno) => errno.into(),
            None => Self::Io(error),
        }
    }
}

impl From<Errno> for ReplaceError {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOSPC | Errno::DQUOT | Errno::FBIG => Self::NoRoom,
            Errno::ACCESS | Errno::PERM | Errno::ROFS => Self::Denied,
            error => Self::Io(error.into()),
        }
    }
}
