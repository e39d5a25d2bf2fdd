//! Folders that are opened without following links, and that are recognized when they are opened
//! again. A path can lead to another folder at any moment, a descriptor cannot.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, fstat, openat, openat2};

use crate::SandboxError;
use crate::sandbox_error::Step;

/// A folder that was opened without following a link below its base.
#[derive(Debug)]
pub(crate) struct PinnedFolder {
    pub(crate) path: PathBuf,
    /// The folder above it that no command can replace.
    base: PathBuf,
    /// The folder itself, open for reading.
    pub(crate) fd: OwnedFd,
    pub(crate) identity: Identity,
}

/// Distinguishes two folders, whatever their paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
}

impl PinnedFolder {
    /// Opens the folder `path`, which is below `base`.
    pub(crate) fn open(base: &Path, path: PathBuf) -> io::Result<Self> {
        let fd = open_below(base, &path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let identity = Identity::of(&fd)?;
        Ok(Self { path, base: base.to_owned(), fd, identity })
    }

    /// Opens the folder once more, as it is reached now. Fails if another one has taken its place.
    pub(crate) fn open_again(&self) -> Result<OwnedFd, SandboxError> {
        let step = || format!("open `{}`", self.path.display());
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let fd = open_below(&self.base, &self.path, flags).during(step())?;
        if Identity::of(&fd).during(step())? == self.identity {
            return Ok(fd);
        }
        Err(SandboxError::Unprotectable {
            path: self.path.clone(),
            reason: "it was replaced meanwhile. Try again".to_owned(),
        })
    }
}

impl Identity {
    pub(crate) fn of(fd: impl AsFd) -> io::Result<Self> {
        let found = fstat(fd)?;
        Ok(Self { device: found.st_dev, inode: found.st_ino })
    }
}

impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.device, self.inode)
    }
}

/// Opens `path`, which is `base` or below it, without following a link below `base`.
pub(crate) fn open_below(base: &Path, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let rest = path.strip_prefix(base).map_err(|_| io::ErrorKind::InvalidInput)?;
    let rest = if rest.as_os_str().is_empty() { Path::new(".") } else { rest };
    let folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let base = openat(CWD, base, folder, Mode::empty())?;
    open_in(&base, rest, flags)
}

/// Opens `path` relative to `folder`, without following a link and without leaving `folder`. Does
/// not wait for the other end of a named pipe.
pub(crate) fn open_in(folder: impl AsFd, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    // `O_PATH` goes with few other flags.
    let flags = if flags.contains(OFlags::PATH) { flags - OFlags::NONBLOCK } else { flags };
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(openat2(folder, path, flags, Mode::empty(), beneath)?)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_on_the_way_is_refused_and_another_folder_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        fs::create_dir_all(base.join("a/b")).unwrap();
        symlink("a", base.join("link")).unwrap();
        symlink("b", base.join("a/last")).unwrap();
        assert!(PinnedFolder::open(&base, base.join("link/b")).is_err());
        assert!(PinnedFolder::open(&base, base.join("a/last")).is_err());
        assert!(PinnedFolder::open(&base, base.join("a/../a")).is_ok());
        assert!(PinnedFolder::open(&base.join("a"), base.join("a/../a")).is_err());
        let pinned = PinnedFolder::open(&base, base.join("a/b")).unwrap();
        pinned.open_again().unwrap();
        fs::rename(base.join("a/b"), base.join("a/c")).unwrap();
        assert!(pinned.open_again().is_err());
        fs::create_dir(base.join("a/b")).unwrap();
        assert!(pinned.open_again().is_err());
        fs::remove_dir(base.join("a/b")).unwrap();
        symlink("c", base.join("a/b")).unwrap();
        assert!(pinned.open_again().is_err());
    }
}
