//! Protected names, which tools do not write.

use std::ffi::{OsStr, OsString};
use std::os::fd::BorrowedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, statat};

use super::{Access, WorkspaceError};

/// A name that tools do not write to or beneath, wherever it occurs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protected {
    /// A file or folder of this name, compared whole.
    pub name: OsString,
    /// Whether it may be read.
    pub reading: ReadAccess,
}

/// Whether tools may read a protected path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadAccess {
    /// Tools may read it.
    Allowed,
    /// Tools may not read it.
    Refused,
}

impl Protected {
    /// Default protected names: `.git`, the folder of Antiphon, which tools cannot read either, and
    /// the folder of IdeA.
    pub fn defaults() -> Vec<Self> {
        let protected = |name: &str, reading| Self { name: name.into(), reading };
        vec![
            protected(".git", ReadAccess::Allowed),
            protected(".antiphon", ReadAccess::Refused),
            protected(".ideai", ReadAccess::Allowed),
        ]
    }

    pub(super) fn check(&self) -> Result<(), WorkspaceError> {
        let mut components = Path::new(&self.name).components();
        match (components.next(), components.next()) {
            (Some(Component::Normal(name)), None) if name == self.name => Ok(()),
            (_, _) => Err(WorkspaceError::Name { name: self.name.clone() }),
        }
    }

    fn forbids(&self, access: Access) -> bool {
        match access {
            Access::Write => true,
            Access::Read => self.reading == ReadAccess::Refused,
        }
    }
}

/// The protected name that forbids access to `path`, real and beneath `folder`.
pub(super) fn forbidden_by<'a>(
    protected: &'a [Protected],
    folder: BorrowedFd<'_>,
    path: &Path,
    access: Access,
) -> Option<&'a OsStr> {
    let mut above = PathBuf::new();
    for component in path.components() {
        let Component::Normal(component) = component else {
            above.push(component);
            continue;
        };
        let hit = protected
            .iter()
            .filter(|one| one.forbids(access))
            .find(|one| component == one.name || is_same(folder, &above, component, &one.name));
        if let Some(hit) = hit {
            return Some(&hit.name);
        }
        above.push(component);
    }
    None
}

/// Whether two names in a folder are one thing: where case does not count, `.GIT` is `.git`.
fn is_same(folder: BorrowedFd<'_>, above: &Path, one: &OsStr, other: &OsStr) -> bool {
    let stat = |name: &OsStr| statat(folder, above.join(name), AtFlags::SYMLINK_NOFOLLOW);
    // The protected one is mostly not there, and then the other need not be looked at.
    stat(other).is_ok_and(|other| {
        stat(one).is_ok_and(|one| (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino))
    })
}
