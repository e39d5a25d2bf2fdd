//! Target of a write: a name in an open folder.

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Access as Permission, AtFlags, accessat, statat};
use rustix::io::Errno;

use super::opened_path::real_path;
use super::{
    Access, EntryKind, Identity, Mode, OpenedPath, PathError, Reach, Workspace, replacement,
    requested_path,
};
use super::{ReplaceError, ReplacedFile};

/// Most retries when another process moves the file during the lookup.
const TRIES_MAX: u32 = 8;

/// A file to create or replace, as a name in a folder held by descriptor.
#[derive(Debug)]
pub(crate) struct WriteTarget<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) folder: OwnedFd,
    /// Folders to create beneath it, the outermost first.
    pub(super) missing: Vec<OsString>,
    pub(super) name: OsString,
    /// Its real path.
    path: PathBuf,
    existing: Option<OpenedPath>,
}

impl WriteTarget<'_> {
    /// The real path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The existing file, if there is one.
    pub(crate) fn existing(&self) -> Option<&OpenedPath> {
        self.existing.as_ref()
    }

    /// Writes `contents` atomically. The existing file must still have the identity `expected`;
    /// `None` means that no file exists.
    pub(crate) fn replace(
        &self,
        contents: &[&[u8]],
        expected: Option<Identity>,
    ) -> Result<ReplacedFile, ReplaceError> {
        replacement::replace(self, contents, expected)
    }
}

/// Resolves a path from a model.
pub(super) fn find<'a>(workspace: &'a Workspace, path: &str) -> Result<WriteTarget<'a>, PathError> {
    match workspace.mode {
        Mode::ReadOnly => return Err(PathError::ReadOnly),
        Mode::Workspace | Mode::Full => {}
    }
    let requested = requested_path::parse(path)?;
    let folder = |path| PathError::NotAFile { path, what: "a folder" };
    if path.ends_with('/') || path.ends_with("/.") || requested.file_name().is_none() {
        return Err(folder(requested));
    }
    let reach = workspace.reach(&requested);
    for _ in 0..TRIES_MAX {
        let found = match workspace.find(&requested, Access::Write, reach) {
            Ok(found) => found,
            Err(error @ (PathError::NotFound { .. } | PathError::Outside { .. })) => {
                return new_target(workspace, &requested, reach, error);
            }
            Err(error) => return Err(error),
        };
        workspace.check_access(&found, Access::Write, reach)?;
        if found.kind() == EntryKind::Folder {
            return Err(folder(requested));
        }
        if found.stat().st_mode & 0o222 == 0 {
            return Err(PathError::Locked { path: requested });
        }
        if let Some(place) = existing_target(workspace, found, reach)? {
            return Ok(place);
        }
    }
    Err(PathError::NotFound { path: requested, near: None })
}

/// Target for an existing file. `None` if the file has moved meanwhile.
fn existing_target(
    workspace: &Workspace,
    found: OpenedPath,
    reach: Reach,
) -> Result<Option<WriteTarget<'_>>, PathError> {
    let path = found.path().to_owned();
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(None);
    };
    let folder = match workspace.open_real(parent, Access::Write, reach) {
        Ok(folder) => folder,
        Err(PathError::NotFound { .. } | PathError::Loop { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let name = name.to_owned();
    match statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if stat.st_ino == found.stat().st_ino && stat.st_dev == found.stat().st_dev => {}
        Ok(_) | Err(_) => return Ok(None),
    }
    // Replacing it needs no permission on the file itself, but the missing permission is intended.
    let access = accessat(&folder, &name, Permission::WRITE_OK, AtFlags::empty());
    if access == Err(Errno::ACCESS) {
        return Err(PathError::Locked { path });
    }
    Ok(Some(WriteTarget {
        workspace,
        folder,
        missing: Vec::new(),
        name,
        path,
        existing: Some(found),
    }))
}

/// The place of a file that does not exist: the innermost folder that does, and what is to be
/// made in it. `error` is what to say if it cannot be made.
fn new_target<'a>(
    workspace: &'a Workspace,
    requested: &Path,
    reach: Reach,
    error: PathError,
) -> Result<WriteTarget<'a>, PathError> {
    let Some(name) = requested.file_name() else {
        return Err(error);
    };
    let mut missing = Vec::new();
    let mut above = requested;
    let folder = loop {
        let Some(parent) = above.parent() else {
            return Err(error);
        };
        above = parent;
        match workspace.find(above, Access::Write, reach) {
            Ok(found) => break found,
            Err(PathError::NotFound { .. } | PathError::Outside { .. }) => {}
            Err(error) => return Err(error),
        }
        match above.components().next_back() {
            Some(Component::Normal(name)) => missing.push(name.to_owned()),
            Some(_) | None => return Err(error),
        }
    };
    missing.reverse();
    if folder.kind() != EntryKind::Folder {
        return Err(PathError::NotAFolder { path: above.to_owned() });
    }
    let first = missing.first().map_or(name, OsString::as_os_str);
    match statat(folder.descriptor(), first, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => {}
        // It is there and leads nowhere, or elsewhere.
        Ok(_) if matches!(error, PathError::NotFound { .. }) => {
            return Err(PathError::Dangling { path: requested.to_owned() });
        }
        Ok(_) => return Err(error),
        Err(errno) => return Err(PathError::from_errno(requested, errno)),
    }
    let real = real_path(folder.descriptor())
        .map_err(|reason| PathError::Io { path: requested.to_owned(), reason })?;
    let path = real.join(missing.iter().collect::<PathBuf>()).join(name);
    workspace.check_access_at(&path, Access::Write, reach)?;
    let name = name.to_owned();
    let folder = folder.descriptor().try_clone_to_owned();
    let folder = folder.map_err(|reason| PathError::Io { path: requested.to_owned(), reason })?;
    Ok(WriteTarget { workspace, folder, missing, name, path, existing: None })
}

impl AsFd for WriteTarget<'_> {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.folder.as_fd()
    }
}
