//! Empty folders that stand where a protected name is missing, so that there is something to
//! mount over.
//!
//! A placeholder carries the sticky bit, which says what it is. Whoever needs one holds a shared
//! lock on it; whoever leaves takes it away if nobody else holds one and nobody filled it.

use std::fs::{DirBuilder, File, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};

use crate::SandboxError;
use crate::sandbox_error::Step;
use crate::shield::{Shield, look};

/// The sticky bit is not subject to the umask, so it is there from the first moment.
const MODE: u32 = 0o1755;
const STICKY: u32 = 0o1000;

/// How often a placeholder that vanishes while it is claimed is made anew.
const ATTEMPTS_MAX: usize = 100;

/// The placeholders that somebody needs; taken away when it is dropped.
#[derive(Debug)]
pub(crate) struct Placeholders {
    held: Vec<(PathBuf, File)>,
}

impl Placeholders {
    /// Makes what is missing, and holds on to what others made.
    pub(crate) fn claim(shields: &[Shield]) -> Result<Self, SandboxError> {
        let mut held = Vec::new();
        for shield in shields.iter().filter(|shield| shield.root.is_some()) {
            let claimed = claim(&shield.path);
            let claimed = claimed.during(format!("reserve `{}`", shield.path.display()))?;
            held.extend(claimed.map(|lock| (shield.path.clone(), lock)));
        }
        Ok(Self { held })
    }
}

impl Drop for Placeholders {
    fn drop(&mut self) {
        for (path, lock) in &self.held {
            if flock(lock, FlockOperation::NonBlockingLockExclusive).is_ok() && same(path, lock) {
                // It is not empty any more if somebody made use of it: then it stays.
                let _ = std::fs::remove_dir(path);
            }
        }
    }
}

/// Whether an empty folder stands here only to be mounted over.
fn is_placeholder(path: &Path, found: &Metadata) -> bool {
    let empty = || std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    found.is_dir() && found.permissions().mode() & STICKY != 0 && empty()
}

/// Holds the placeholder at `path`. `None` if there is something else, or nothing can be made here.
fn claim(path: &Path) -> io::Result<Option<File>> {
    for _ in 0..ATTEMPTS_MAX {
        match look(path) {
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

/// Where we cannot make anything, nobody whom we start can.
fn is_refusal(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

fn same(path: &Path, lock: &File) -> bool {
    let id = |found: Metadata| (found.dev(), found.ino());
    match (look(path), lock.metadata()) {
        (Some(there), Ok(held)) => id(there) == id(held),
        (_, _) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Guard;

    fn shield(root: &Path) -> [Shield; 1] {
        let path = root.join(".git");
        [Shield { path, guard: Guard::ReadOnly, root: Some(root.to_owned()) }]
    }

    #[test]
    fn the_last_one_to_leave_takes_it_away() {
        let root = tempfile::tempdir().unwrap();
        let first = Placeholders::claim(&shield(root.path())).unwrap();
        let second = Placeholders::claim(&shield(root.path())).unwrap();
        drop(first);
        assert!(root.path().join(".git").is_dir());
        drop(second);
        assert!(!root.path().join(".git").exists());
    }

    #[test]
    fn what_somebody_filled_stays() {
        let root = tempfile::tempdir().unwrap();
        let placeholders = Placeholders::claim(&shield(root.path())).unwrap();
        std::fs::write(root.path().join(".git/HEAD"), "ref").unwrap();
        drop(placeholders);
        assert!(root.path().join(".git/HEAD").exists());
    }

    #[test]
    fn what_was_there_is_left_alone() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join(".git")).unwrap();
        drop(Placeholders::claim(&shield(root.path())).unwrap());
        assert!(root.path().join(".git").is_dir());
    }
}
