//! Where a file is made before it takes its name: a private folder beside its place.
//!
//! Nobody else can look or write into it, and whatever SQLite leaves beside the file is gone with
//! it. A process that is killed leaves its folder behind; the next one to come clears it away.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::{Builder, TempDir};

/// How the folders are called, up to a random end.
const PREFIX: &str = ".antiphon-copy-";

/// Folders that are cleared away at a time.
const CLEARED_MAX: usize = 64;

/// One that is younger may not have its lock yet.
const YOUNG: Duration = Duration::from_secs(60);

/// A private folder. It is removed when this is dropped, with everything in it.
#[derive(Debug)]
pub(crate) struct Staging {
    folder: TempDir,
    /// Says that somebody is at work here.
    _lock: File,
}

impl Staging {
    /// A folder beside `target`, on the same file system.
    pub(crate) fn beside(target: &Path) -> io::Result<Self> {
        let parent = folder_of(target);
        let private = fs::Permissions::from_mode(0o700);
        let folder = Builder::new().prefix(PREFIX).permissions(private).tempdir_in(parent)?;
        let lock = File::open(folder.path())?;
        lock.try_lock()?;
        clear(parent, lock.metadata()?.uid())?;
        Ok(Self { folder, _lock: lock })
    }

    /// An empty file in it, for its owner only.
    pub(crate) fn file(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.folder.path().join(name);
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(path)
    }
}

/// The folder that something is in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    }
}

/// Makes sure that the names in a folder are on the disk.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Removes what was left by those who were killed.
fn clear(parent: &Path, user: u32) -> io::Result<()> {
    let ours =
        |entry: &fs::DirEntry| entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes());
    let entries = fs::read_dir(parent)?.filter_map(Result::ok).filter(ours);
    for entry in entries.take(CLEARED_MAX) {
        let path = entry.path();
        if is_left(&path, user) {
            // Somebody else may be clearing too.
            let _ = fs::remove_dir_all(path);
        }
    }
    Ok(())
}

/// Whether it is a folder of this user's in which nobody works any more.
fn is_left(folder: &Path, user: u32) -> bool {
    let Ok(about) = fs::symlink_metadata(folder) else { return false };
    let old = about.modified().ok().and_then(|at| at.elapsed().ok());
    about.is_dir()
        && about.uid() == user
        && old.is_some_and(|age| age > YOUNG)
        && File::open(folder).is_ok_and(|lock| lock.try_lock().is_ok())
}
