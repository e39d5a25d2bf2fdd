//! Where the key file is, and how it is opened: private, owned by this user, and no link. Anything else
//! is an error, and is neither read nor written. Everything here blocks.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use antiphon_private_file::{AccessError, PrivateEntry, check, open_at, parent_of};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, fstat, mkdirat, openat, statat};
use rustix::io::Errno;

use super::file_state::{FileState, OpenState};
use crate::ring_error::{KeyRingError, unusable};

/// Largest key file, in bytes. A larger one is not read.
pub const FILE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Path of the key file.
#[derive(Debug)]
pub(crate) struct FileLocation {
    path: PathBuf,
    folder: PathBuf,
    name: OsString,
}

impl FileLocation {
    pub(crate) fn new(path: PathBuf) -> Result<Self, KeyRingError> {
        let name = path.file_name().map(OsStr::to_owned);
        let name = name.ok_or_else(|| unusable(&path)("it names no file".to_owned()))?;
        let folder = parent_of(&path).to_owned();
        Ok(Self { path, folder, name })
    }

    pub(crate) fn name(&self) -> &OsStr {
        &self.name
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The state of the file; `None` when it does not exist.
    pub(crate) fn state(&self) -> Result<Option<FileState>, KeyRingError> {
        let Some(folder) = self.open_folder()? else { return Ok(None) };
        match statat(&folder, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(FileState::of(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(refuse(&self.path, error.into())),
        }
    }

    /// Reads the file; `None` when it does not exist.
    pub(crate) fn read(&self) -> Result<Option<(OpenState, Vec<u8>)>, KeyRingError> {
        let Some(folder) = self.open_folder()? else { return Ok(None) };
        self.read_in(&folder)
    }

    pub(crate) fn read_in(
        &self,
        folder: &OwnedFd,
    ) -> Result<Option<(OpenState, Vec<u8>)>, KeyRingError> {
        let (file, stat) = match open_at(folder, &self.name) {
            Ok(opened) => opened,
            Err(AccessError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(None);
            }
            Err(error) => return Err(refuse(&self.path, error)),
        };
        let mut bytes = Vec::new();
        let limit = u64::try_from(FILE_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
        let unreadable = |error: io::Error| unusable(&self.path)(error.to_string());
        (&file).take(limit).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() > FILE_BYTES_MAX {
            let reason = format!("it has more than {FILE_BYTES_MAX} bytes");
            return Err(unusable(&self.path)(reason));
        }
        // The state is that before the read: a write during the read changes it.
        Ok(Some((OpenState::new(FileState::of(&stat), file), bytes)))
    }

    /// Opens the folder, and creates it first if it does not exist.
    pub(crate) fn create_folder(&self) -> Result<OwnedFd, KeyRingError> {
        match mkdirat(CWD, &self.folder, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(unusable(&self.folder)(error.to_string())),
        }
        self.open_folder()?.ok_or_else(|| unusable(&self.folder)("it is gone".to_owned()))
    }

    /// Opens the folder and checks that no other user can write to it; `None` when it does not exist.
    fn open_folder(&self) -> Result<Option<OwnedFd>, KeyRingError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let unreadable = |error: Errno| unusable(&self.folder)(error.to_string());
        match openat(CWD, &self.folder, flags, Mode::empty()) {
            Ok(folder) => {
                let stat = fstat(&folder).map_err(unreadable)?;
                check(&stat, PrivateEntry::Folder).map_err(|error| refuse(&self.folder, error))?;
                Ok(Some(folder))
            }
            Err(Errno::NOENT) => Ok(None),
            // With both flags, a link is reported as no folder.
            Err(Errno::NOTDIR | Errno::LOOP) => {
                Err(unusable(&self.folder)("it is a link, or no folder".to_owned()))
            }
            Err(error) => Err(unreadable(error)),
        }
    }

    /// The name of the key file with another ending.
    pub(crate) fn sibling_name(&self, ending: &str) -> OsString {
        let mut name = self.name.clone();
        name.push(ending);
        name
    }
}

fn refuse(path: &Path, error: AccessError) -> KeyRingError {
    let shown = path.display().to_string();
    match error {
        AccessError::Foreign { owner, user } => KeyRingError::Foreign { path: shown, owner, user },
        AccessError::Exposed { mode, wanted } => {
            KeyRingError::Exposed { path: shown, mode, wanted }
        }
        error @ (AccessError::Io(_) | AccessError::Link | AccessError::NotRegular) => {
            unusable(path)(error.to_string())
        }
    }
}
