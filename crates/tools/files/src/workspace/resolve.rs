//! Resolves paths and checks access to them. A symbolic link does not lead out of the project's folders.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode as Bits, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

use super::root::Root;
use super::{Access, Mode, OpenedPath, OutsidePaths, PathError, Workspace, git_dir, protected};

/// Most retries when folders are renamed during a lookup.
const TRIES_MAX: u32 = 32;

/// Names looked at for one that is similar.
const NAMES_MAX: usize = 2_000;

/// How far a path may lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// To where the roots are.
    Roots,
    /// Anywhere.
    Anywhere,
}

impl Workspace {
    /// How far a path from a model may lead. It is judged as it is spelled, like a gate judges it.
    pub(super) fn reach(&self, path: &Path) -> Reach {
        let plain = plain(&self.working_folder().join(path));
        let is_within = self.roots.iter().any(|root| root.rest(&plain).is_some());
        match (self.mode, self.outside) {
            (Mode::Full, _) => Reach::Anywhere,
            (_, OutsidePaths::AskedFor) if !is_within => Reach::Anywhere,
            (Mode::ReadOnly | Mode::Workspace, OutsidePaths::AskedFor | OutsidePaths::Refused) => {
                Reach::Roots
            }
        }
    }

    /// Opens the target of `path`. Follows symlinks that stay within bounds.
    pub(super) fn find(
        &self,
        path: &Path,
        access: Access,
        reach: Reach,
    ) -> Result<OpenedPath, PathError> {
        let descriptor = match reach {
            Reach::Anywhere => {
                let from = self.roots[0].folder();
                // Outside of mode `full` it is the path that the gate asked about.
                let asked = match self.mode {
                    Mode::Full => path.to_owned(),
                    Mode::ReadOnly | Mode::Workspace => plain(&self.working_folder().join(path)),
                };
                open(from, &asked, ResolveFlags::NO_MAGICLINKS)
                    .map_err(|e| PathError::from_errno(path, e))?
            }
            Reach::Roots => self.open_beneath_a_root(path, access)?,
        };
        OpenedPath::new(descriptor, path)
    }

    /// Checks that an opened path is within bounds and not protected.
    pub(super) fn check_access(
        &self,
        found: &OpenedPath,
        access: Access,
        reach: Reach,
    ) -> Result<(), PathError> {
        self.check_access_at(found.path(), access, reach)
    }

    /// Checks access to `real`, a path without symlinks.
    pub(super) fn check_access_at(
        &self,
        real: &Path,
        access: Access,
        reach: Reach,
    ) -> Result<(), PathError> {
        let root = self.root_of(real, access);
        let (folder, beneath) = match (&root, reach) {
            (Some((root, beneath)), _) => (root.folder(), beneath.as_path()),
            (None, Reach::Anywhere) => (CWD, real),
            (None, Reach::Roots) => return Err(self.outside(real, access)),
        };
        if self.mode != Mode::Full && self.hidden.covers(real) {
            return Err(PathError::Hidden { path: real.to_owned() });
        }
        if access == Access::Write
            && let Some(within) = git_dir::above(folder, beneath)
        {
            let (path, folder) = (real.to_owned(), within);
            return Err(PathError::InRepository { path, folder });
        }
        match protected::forbidden_by(&self.protected, folder, beneath, access) {
            None => Ok(()),
            Some(name) => {
                let (path, name) = (real.to_owned(), name.to_owned());
                Err(PathError::Protected { path, name, access })
            }
        }
    }

    /// Opens a path without symlinks, beneath its root unless everything is allowed.
    pub(super) fn open_real(
        &self,
        real: &Path,
        access: Access,
        reach: Reach,
    ) -> Result<OwnedFd, PathError> {
        let opened = match (self.root_of(real, access), reach) {
            (Some((root, beneath)), _) => {
                let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
                open(root.folder(), &beneath, resolve)
            }
            (None, Reach::Anywhere) => open(CWD, real, ResolveFlags::NO_SYMLINKS),
            (None, Reach::Roots) => return Err(self.outside(real, access)),
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
        self.open_real(&real, access, Reach::Roots)
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
        let reach = self.reach(path);
        let folder = self.find(folder.unwrap_or(Path::new(".")), Access::Read, reach).ok()?;
        self.check_access(&folder, Access::Read, reach).ok()?;
        let entries = folder.entries(NAMES_MAX).ok()?;
        let names: Vec<&str> = entries.iter().filter_map(|(name, _)| name.to_str()).collect();
        let close = similar::get_close_matches(name, &names, 1, 0.7);
        close.first().map(|close| path.with_file_name(close))
    }
}

/// A path without `.` and `..`, whatever is there.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other @ (Component::Prefix(_) | Component::RootDir | Component::Normal(_)) => {
                plain.push(other);
            }
        }
    }
    plain
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
