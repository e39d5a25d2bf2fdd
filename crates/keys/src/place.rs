//! The file of keys, reached by descriptor: private, ours, and no link. What is not so is an error, and
//! is neither read nor written. Everything here blocks.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, mkdirat, openat, statat};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::ring_error::{RingError, unusable};
use crate::stamp::{Sight, Stamp};

/// Largest file of keys, in bytes. A larger one is not read.
pub const FILE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Where the file of keys is.
#[derive(Debug)]
pub(crate) struct Place {
    path: PathBuf,
    folder: PathBuf,
    name: OsString,
}

impl Place {
    pub(crate) fn new(path: PathBuf) -> Result<Self, RingError> {
        let name = path.file_name().map(OsStr::to_owned);
        let name = name.ok_or_else(|| unusable(&path)("it names no file".to_owned()))?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).to_owned();
        Ok(Self { path, folder, name })
    }

    pub(crate) fn name(&self) -> &OsStr {
        &self.name
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The state of the file; `None` when it is not there.
    pub(crate) fn stamp(&self) -> Result<Option<Stamp>, RingError> {
        let Some(folder) = self.open_folder()? else { return Ok(None) };
        match statat(&folder, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(about) => Ok(Some(Stamp::of(&about))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(self.unusable(error)),
        }
    }

    /// What is in the file; `None` when it is not there.
    pub(crate) fn read(&self) -> Result<Option<(Sight, Vec<u8>)>, RingError> {
        let Some(folder) = self.open_folder()? else { return Ok(None) };
        self.read_in(&folder)
    }

    pub(crate) fn read_in(&self, folder: &OwnedFd) -> Result<Option<(Sight, Vec<u8>)>, RingError> {
        // A pipe that nobody writes to must not hold up its reader.
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match openat(folder, &self.name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(self.unusable(error)),
        };
        let about = fstat(&file).map_err(|error| self.unusable(error))?;
        if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile {
            return Err(unusable(&self.path)("it is not a regular file".to_owned()));
        }
        check(&about, &self.path, Private::File)?;
        let mut bytes = Vec::new();
        let limit = u64::try_from(FILE_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
        let said = |error: io::Error| unusable(&self.path)(error.to_string());
        (&file).take(limit).read_to_end(&mut bytes).map_err(said)?;
        if bytes.len() > FILE_BYTES_MAX {
            let reason = format!("it has more than {FILE_BYTES_MAX} bytes");
            return Err(unusable(&self.path)(reason));
        }
        // The stamp is from before: what is written while it is read makes it another.
        Ok(Some((Sight::new(Stamp::of(&about), file), bytes)))
    }

    /// Opens the folder, and makes it before if it is not there.
    pub(crate) fn make_folder(&self) -> Result<OwnedFd, RingError> {
        match mkdirat(CWD, &self.folder, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(unusable(&self.folder)(error.to_string())),
        }
        self.open_folder()?.ok_or_else(|| unusable(&self.folder)("it is gone".to_owned()))
    }

    /// Opens the folder, which is ours and nobody else writes to; `None` when it is not there.
    fn open_folder(&self) -> Result<Option<OwnedFd>, RingError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let said = |error: Errno| unusable(&self.folder)(error.to_string());
        match openat(CWD, &self.folder, flags, Mode::empty()) {
            Ok(folder) => {
                check(&fstat(&folder).map_err(said)?, &self.folder, Private::Folder)?;
                Ok(Some(folder))
            }
            Err(Errno::NOENT) => Ok(None),
            // With both flags, a link is no folder.
            Err(Errno::NOTDIR | Errno::LOOP) => {
                Err(unusable(&self.folder)("it is a link, or no folder".to_owned()))
            }
            Err(error) => Err(said(error)),
        }
    }

    /// The name of something that belongs to the file.
    pub(crate) fn beside(&self, ending: &str) -> OsString {
        let mut name = self.name.clone();
        name.push(ending);
        name
    }

    fn unusable(&self, error: Errno) -> RingError {
        unusable(&self.path)(match error {
            Errno::LOOP => "it is a link: put the file itself here".to_owned(),
            other => other.to_string(),
        })
    }
}

/// What must be ours alone.
#[derive(Clone, Copy)]
enum Private {
    /// Nobody else reads or writes it.
    File,
    /// Nobody else writes to it.
    Folder,
}

fn check(about: &Stat, path: &Path, private: Private) -> Result<(), RingError> {
    let (owner, user) = (about.st_uid, geteuid().as_raw());
    if owner != user {
        return Err(RingError::Foreign { path: path.display().to_string(), owner, user });
    }
    let mode = about.st_mode & 0o7777;
    let (forbidden, wanted) = match private {
        Private::File => (0o077, 0o600),
        Private::Folder => (0o022, 0o700),
    };
    if mode & forbidden != 0 {
        return Err(RingError::Exposed { path: path.display().to_string(), mode, wanted });
    }
    Ok(())
}
