//! A private folder next to the target, where a file is made before it gets its name.
//!
//! Other users can neither read nor write it, and SQLite's companion files are removed with
//! it. A killed process leaves its folder behind; the next process removes it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::{Builder, TempDir};

/// Prefix of the folders' names; the rest is random.
const PREFIX: &str = ".antiphon-copy-";

/// Most old folders to remove at a time.
const CLEARED_MAX: usize = 64;

/// A younger folder may not have its lock yet.
const YOUNG: Duration = Duration::from_secs(60);

/// A private folder. Dropping it removes it with everything in it.
#[derive(Debug)]
pub(crate) struct StagingFolder {
    folder: TempDir,
    /// Held while the folder is in use.
    _lock: File,
}

impl StagingFolder {
    /// A folder next to `target`, on the same file system.
    pub(crate) fn next_to(target: &Path) -> io::Result<Self> {
        let parent = folder_of(target);
        let private = fs::Permissions::from_mode(0o700);
        let folder = Builder::new().prefix(PREFIX).permissions(private).tempdir_in(parent)?;
        let lock = File::open(folder.path())?;
        lock.try_lock()?;
        clear(parent, lock.metadata()?.uid())?;
        Ok(Self { folder, _lock: lock })
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// An empty file in it, readable by its owner alone.
    pub(crate) fn file(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.folder.path().join(name);
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(path)
    }
}

/// The folder of a path.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    }
}

/// Syncs the names in a folder.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Removes the folders of killed processes.
fn clear(parent: &Path, user: u32) -> io::Result<()> {
    let ours =
        |entry: &fs::DirEntry| entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes());
    let entries = fs::read_dir(parent)?.filter_map(Result::ok).filter(ours);
    for entry in entries.take(CLEARED_MAX) {
        let path = entry.path();
        if is_left(&path, user) {
            // Another process may be removing it too.
            let _ = fs::remove_dir_all(path);
        }
    }
    Ok(())
}

/// Whether it is an unused folder of this user.
fn is_left(folder: &Path, user: u32) -> bool {
    let Ok(about) = fs::symlink_metadata(folder) else { return false };
    let old = about.modified().ok().and_then(|at| at.elapsed().ok());
    about.is_dir()
        && about.uid() == user
        && old.is_some_and(|age| age > YOUNG)
        && File::open(folder).is_ok_and(|lock| lock.try_lock().is_ok())
}
