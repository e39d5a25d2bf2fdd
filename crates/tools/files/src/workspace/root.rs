//! A root folder of a workspace.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};
use rustix::io::Errno;

use super::WorkspaceError;
use super::opened_path::real_path;

/// A folder, held by descriptor.
#[derive(Debug)]
pub(super) struct Root {
    folder: OwnedFd,
    /// Configured path, made absolute.
    given: PathBuf,
    /// Real path when it was opened.
    opened: PathBuf,
}

impl Root {
    pub(super) fn open(path: &Path) -> Result<Self, WorkspaceError> {
        let unusable = |reason| WorkspaceError::Root { path: path.to_owned(), reason };
        let given = std::path::absolute(path).map_err(unusable)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = open(&given, flags, Mode::empty()).map_err(|e| unusable(e.into()))?;
        match openat2(&folder, ".", flags, Mode::empty(), ResolveFlags::BENEATH) {
            Ok(_) => {}
            Err(Errno::NOSYS) => return Err(WorkspaceError::Unsupported { what: "openat2" }),
            Err(error) => return Err(unusable(error.into())),
        }
        let Ok(opened) = real_path(folder.as_fd()) else {
            return Err(WorkspaceError::Unsupported { what: "/proc" });
        };
        Ok(Self { folder, given, opened })
    }

    /// Descriptor of the folder.
    pub(super) fn folder(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    /// Configured path.
    pub(super) fn path(&self) -> &Path {
        &self.opened
    }

    /// Current real path.
    pub(super) fn real(&self) -> io::Result<PathBuf> {
        real_path(self.folder())
    }

    /// The rest of `path` beneath this root, compared as text. The kernel makes the final check.
    pub(super) fn rest<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        path.strip_prefix(&self.opened).or_else(|_| path.strip_prefix(&self.given)).ok()
    }
}
