//! Empty folders in place of missing protected names, so that there is something to mount over.
//!
//! A placeholder has the sticky bit, which marks it. A user of one holds a shared lock on it, and
//! removes it at the end if no other user holds a lock and it is still empty.

use std::fs::{DirBuilder, File, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};

use crate::SandboxError;
use crate::protected_path::{ProtectedPath, metadata_of};
use crate::sandbox_error::Step;

/// The sticky bit is not subject to the umask, so it is set from the start.
const MODE: u32 = 0o1755;
const STICKY: u32 = 0o1000;

/// How often to create a placeholder again that vanishes while it is claimed.
const ATTEMPTS_MAX: usize = 100;

/// Placeholders in use. Removed on drop.
#[derive(Debug)]
pub(crate) struct Placeholders {
    open_path: Vec<(PathBuf, File)>,
}

impl Placeholders {
    /// Creates missing placeholders and locks existing ones.
    pub(crate) fn claim(protected_paths: &[ProtectedPath]) -> Result<Self, SandboxError> {
        let mut open_path = Vec::new();
        for protected in protected_paths.iter().filter(|protected| protected.root.is_some()) {
            let claimed = claim(&protected.path);
            let claimed = claimed.during(format!("reserve `{}`", protected.path.display()))?;
            open_path.extend(claimed.map(|lock| (protected.path.clone(), lock)));
        }
        Ok(Self { open_path })
    }
}

impl Drop for Placeholders {
    fn drop(&mut self) {
        for (path, lock) in &self.open_path {
            if flock(lock, FlockOperation::NonBlockingLockExclusive).is_ok() && same(path, lock) {
                // Fails, as it should, if the folder is no longer empty.
                let _ = std::fs::remove_dir(path);
            }
        }
    }
}

/// Whether this empty folder is a placeholder.
fn is_placeholder(path: &Path, found: &Metadata) -> bool {
    let empty = || std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    found.is_dir() && found.permissions().mode() & STICKY != 0 && empty()
}

/// Locks the placeholder at `path`. `None` if something else is there, or if no folder can be
/// created here.
fn claim(path: &Path) -> io::Result<Option<File>> {
    for _ in 0..ATTEMPTS_MAX {
        match metadata_of(path) {
            Some(found) if is_placeholder(path, &found) => {}
            Some(_) => return Ok(None),
            None => match make(path) {
                Ok(()) => {}
                Err(error) if is_refusal(&error) => return Ok(None),
                Err(error) => return Err(error),
            },
        }
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(lock) = open(path, flags, Mode::empty()) else { continue };
        let lock = File::from(lock);
        if flock(&lock, FlockOperation::NonBlockingLockShared).is_ok() && same(path, &lock) {
            return Ok(Some(lock));
        }
        std::thread::yield_now();
    }
    Err(io::Error::new(io::ErrorKind::ResourceBusy, "others keep taking it away"))
}

fn make(path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    match DirBuilder::new().mode(MODE).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Where this process cannot create a folder, its descendants cannot either.
fn is_refusal(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

fn same(path: &Path, lock: &File) -> bool {
    let id = |found: Metadata| (found.dev(), found.ino());
    match (metadata_of(path), lock.metadata()) {
        (Some(there), Ok(open_path)) => id(there) == id(open_path),
        (_, _) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Guard;

    fn protected(root: &Path) -> [ProtectedPath; 1] {
        let path = root.join(".git");
        [ProtectedPath { path, guard: Guard::ReadOnly, root: Some(root.to_owned()) }]
    }

    #[test]
    fn the_last_user_removes_a_placeholder() {
        let root = tempfile::tempdir().unwrap();
        let first = Placeholders::claim(&protected(root.path())).unwrap();
        let second = Placeholders::claim(&protected(root.path())).unwrap();
        drop(first);
        assert!(root.path().join(".git").is_dir());
        drop(second);
        assert!(!root.path().join(".git").exists());
    }

    #[test]
    fn a_filled_placeholder_stays() {
        let root = tempfile::tempdir().unwrap();
        let placeholders = Placeholders::claim(&protected(root.path())).unwrap();
        std::fs::write(root.path().join(".git/HEAD"), "ref").unwrap();
        drop(placeholders);
        assert!(root.path().join(".git/HEAD").exists());
    }

    #[test]
    fn an_existing_folder_is_left_alone() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join(".git")).unwrap();
        drop(Placeholders::claim(&protected(root.path())).unwrap());
        assert!(root.path().join(".git").is_dir());
    }
}
