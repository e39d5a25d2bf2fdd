//! Resolves paths and checks access to them.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode as Bits, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

use super::root::Root;
use super::{Access, Mode, OpenedPath, PathError, Workspace, protected};

/// Most retries when folders are renamed during a lookup.
const TRIES_MAX: u32 = 32;

/// Names looked at for one that is similar.
const NAMES_MAX: usize = 2_000;

impl Workspace {
    /// Opens the target of `path`. Follows symlinks that stay within bounds.
    pub(super) fn find(&self, path: &Path, access: Access) -> Result<OpenedPath, PathError> {
        let descriptor = match self.mode {
            Mode::Full => {
                let from = self.roots[0].folder();
                open(from, path, ResolveFlags::NO_MAGICLINKS)
                    .map_err(|e| PathError::from_errno(path, e))?
            }
            Mode::ReadOnly | Mode::Workspace => self.open_beneath_a_root(path, access)?,
        };
        OpenedPath::new(descriptor, path)
    }

    /// Checks that an opened path is within bounds and not protected.
    pub(super) fn check_access(&self, found: &OpenedPath, access: Access) -> Result<(), PathError> {
        self.check_access_at(found.path(), access)
    }

    /// Checks access to `real`, a path without symlinks.
    pub(super) fn check_access_at(&self, real: &Path, access: Access) -> Result<(), PathError> {
        let root = self.root_of(real, access);
        let (folder, beneath) = match (&root, self.mode) {
            (Some((root, beneath)), _) => (root.folder(), beneath.as_path()),
            (None, Mode::Full) => (CWD, real),
            (None, Mode::ReadOnly | Mode::Workspace) => return Err(self.outside(real, access)),
        };
        match protected::forbidden_by(&self.protected, folder, beneath, access) {
            None => Ok(()),
            Some(name) => {
                let (path, name) = (real.to_owned(), name.to_owned());
                Err(PathError::Protected { path, name, access })
            }
        }
    }

    /// Opens a path without symlinks, beneath its root unless everything is allowed.
    pub(super) fn open_real(&self, real: &Path, access: Access) -> Result<OwnedFd, PathError> {
        let opened = match (self.root_of(real, access), self.mode) {
            (Some((root, beneath)), _) => {
                let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
                open(root.folder(), &beneath, resolve)
            }
            (None, Mode::Full) => open(CWD, real, ResolveFlags::NO_SYMLINKS),
            (None, Mode::ReadOnly | Mode::Workspace) => return Err(self.outside(real, access)),
        };
        opened.map_err(|error| PathError::from_errno(real, error))
    }

    fn open_beneath_a_root(&self, path: &Path, access: Access) -> Result<OwnedFd, PathError> {
        let absolute = self.working_folder().join(path);
        let by_look = self.roots(access).iter().find_map(|root| {
            let rest = if path.is_absolute() { root.rest(path)? } else { path };
            Some((root, rest))
        });
        if let Some((root, rest)) = by_look {
            match open(root.folder(), rest, ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS) {
                Ok(descriptor) => return Ok(descriptor),
                Err(Errno::XDEV) => {}
                Err(error) => return Err(PathError::from_errno(path, error)),
            }
        }
        // It leaves its root, but may come back to it or to another. This is only a guess at
        // where: nothing follows a symlink on the way there any more.
        let real = absolute.canonicalize().map_err(|_| self.outside(path, access))?;
        if self.root_of(&real, access).is_none() {
            return Err(self.outside(path, access));
        }
        self.open_real(&real, access)
    }

    /// The innermost root that `real` is beneath, and the rest of it.
    fn root_of(&self, real: &Path, access: Access) -> Option<(&Root, PathBuf)> {
        let beneath =
            |root| Some((root, real.strip_prefix(Root::real(root).ok()?).ok()?.to_owned()));
        let candidates = self.roots(access).iter().filter_map(beneath);
        candidates.min_by_key(|(_, rest)| rest.components().count())
    }

    /// A path with a similar name in the folder of `path`.
    pub(super) fn similar_name(&self, path: &Path) -> Option<PathBuf> {
        let name = path.file_name()?.to_str()?;
        let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let folder = self.find(folder.unwrap_or(Path::new(".")), Access::Read).ok()?;
        self.check_access(&folder, Access::Read).ok()?;
        let entries = folder.entries(NAMES_MAX).ok()?;
        let names: Vec<&str> = entries.iter().filter_map(|(name, _)| name.to_str()).collect();
        let close = similar::get_close_matches(name, &names, 1, 0.7);
        close.first().map(|close| path.with_file_name(close))
    }
}

/// Opens as a path only: nothing is read, no device is touched, no pipe waited for.
fn open(from: BorrowedFd<'_>, path: &Path, resolve: ResolveFlags) -> Result<OwnedFd, Errno> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    for _ in 1..TRIES_MAX {
        match openat2(from, path, flags, Bits::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            opened => return opened,
        }
    }
    openat2(from, path, flags, Bits::empty(), resolve)
}
