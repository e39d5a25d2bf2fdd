//! Empty folders and files in place of missing protected names, so that there is something to mount
//! over.
//!
//! A placeholder has the sticky bit, which marks it. A user of one holds a shared lock on it, and
//! removes it at the end if no other user holds a lock and it is still as it was made.

use std::fs::{DirBuilder, File, Metadata, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};

use crate::SandboxError;
use crate::mounts::fd_path;
use crate::protected_path::{ProtectedPath, metadata_of};
use crate::repository::Repository;
use crate::sandbox_error::Step;

/// The sticky bit is not subject to the umask, so it is set from the start.
const MODE: u32 = 0o1755;
const FILE_MODE: u32 = 0o1644;
const STICKY: u32 = 0o1000;

/// How often to create a placeholder again that vanishes while it is claimed.
const ATTEMPTS_MAX: usize = 100;

/// Placeholders in use. Removed on drop.
#[derive(Debug)]
pub(crate) struct Placeholders {
    open_path: Vec<(PathBuf, Kind, File)>,
}

/// What stands in for a missing path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Folder,
    /// A file with this text.
    File(&'static [u8]),
}

impl Placeholders {
    /// Creates missing placeholders and locks existing ones. `repository` must live longer.
    pub(crate) fn claim(
        protected_paths: &[ProtectedPath],
        repository: Option<&Repository>,
    ) -> Result<Self, SandboxError> {
        let named = protected_paths.iter().filter(|protected| protected.root.is_some());
        let named = named.map(|protected| (&protected.path, Kind::Folder));
        // By descriptor: the path of a repository may lead elsewhere the next moment.
        let kept = repository.iter().flat_map(|repository| {
            let git_dir = repository.writable.first().map(|folder| fd_path(&folder.fd));
            repository.kept.iter().filter_map(move |name| Some(git_dir.as_ref()?.join(name)))
        });
        let kind = |path: &Path| match Repository::placeholder_text(path) {
            Some(text) => Kind::File(text),
            None => Kind::Folder,
        };
        let kept: Vec<_> = kept.map(|path| (kind(&path), path)).collect();
        let kept = kept.iter().map(|(kind, path)| (path, *kind));
        let mut placeholders = Self { open_path: Vec::new() };
        for (path, kind) in named.chain(kept) {
            let claimed = claim(path, kind).during(format!("reserve `{}`", path.display()))?;
            placeholders.open_path.extend(claimed.map(|lock| (path.clone(), kind, lock)));
        }
        Ok(placeholders)
    }
}

impl Drop for Placeholders {
    fn drop(&mut self) {
        for (path, kind, lock) in &self.open_path {
            if flock(lock, FlockOperation::NonBlockingLockExclusive).is_ok() && same(path, lock) {
                let _ = match kind {
                    // Fails, as it should, if the folder is no longer empty.
                    Kind::Folder => std::fs::remove_dir(path),
                    Kind::File(text) if is_text(path, text) => std::fs::remove_file(path),
                    Kind::File(_) => Ok(()),
                };
            }
        }
    }
}

/// Whether this is a placeholder.
fn is_placeholder(path: &Path, kind: Kind, found: &Metadata) -> bool {
    let empty = || std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    let unchanged = match kind {
        Kind::Folder => found.is_dir() && empty(),
        Kind::File(text) => found.is_file() && is_text(path, text),
    };
    found.permissions().mode() & STICKY != 0 && unchanged
}

fn is_text(path: &Path, text: &[u8]) -> bool {
    metadata_of(path).is_some_and(|found| found.len() == text.len() as u64)
        && std::fs::read(path).is_ok_and(|found| found == text)
}

/// Locks the placeholder at `path`. `None` if something else is there, or if nothing can be created
/// here.
fn claim(path: &Path, kind: Kind) -> io::Result<Option<File>> {
    for _ in 0..ATTEMPTS_MAX {
        match metadata_of(path) {
            Some(found) if is_placeholder(path, kind, &found) => {}
            Some(_) => return Ok(None),
            None => match make(path, kind) {
                Ok(()) => {}
                Err(error) if is_refusal(&error) => return Ok(None),
                Err(error) => return Err(error),
            },
        }
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(lock) = open(path, flags, Mode::empty()) else { continue };
        let lock = File::from(lock);
        if flock(&lock, FlockOperation::NonBlockingLockShared).is_ok() && same(path, &lock) {
            return Ok(Some(lock));
        }
        std::thread::yield_now();
    }
    Err(io::Error::new(io::ErrorKind::ResourceBusy, "others keep taking it away"))
}

fn make(path: &Path, kind: Kind) -> io::Result<()> {
    let parent = path.parent().unwrap_or(path);
    std::fs::create_dir_all(parent)?;
    let made = match kind {
        Kind::Folder => DirBuilder::new().mode(MODE).create(path),
        // It appears with its text: git reads it at any moment.
        Kind::File(text) => tempfile::NamedTempFile::new_in(parent).and_then(|mut file| {
            file.write_all(text)?;
            file.as_file().set_permissions(Permissions::from_mode(FILE_MODE))?;
            file.persist_noclobber(path).map(drop).map_err(|error| error.error)
        }),
    };
    match made {
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
        let first = Placeholders::claim(&protected(root.path()), None).unwrap();
        let second = Placeholders::claim(&protected(root.path()), None).unwrap();
        drop(first);
        assert!(root.path().join(".git").is_dir());
        drop(second);
        assert!(!root.path().join(".git").exists());
    }

    #[test]
    fn a_filled_placeholder_stays() {
        let root = tempfile::tempdir().unwrap();
        let placeholders = Placeholders::claim(&protected(root.path()), None).unwrap();
        std::fs::write(root.path().join(".git/HEAD"), "ref").unwrap();
        drop(placeholders);
        assert!(root.path().join(".git/HEAD").exists());
    }

    #[test]
    fn an_existing_folder_is_left_alone() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join(".git")).unwrap();
        drop(Placeholders::claim(&protected(root.path()), None).unwrap());
        assert!(root.path().join(".git").is_dir());
    }
}
