//! Detects changes of folders: by file system events for existing folders, and by polling for the rest.
//!
//! Polled are missing folders, replaced folders, files in other folders, and every folder when the system
//! has no more watches.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use antiphon_folder_watch::Links;
use tokio::sync::Notify;

use crate::folder::Folder;

/// Detects changes of folders.
pub(crate) struct FolderWatcher {
    watcher: antiphon_folder_watch::FolderWatcher,
}

/// Device and inode: differs when a folder is replaced.
type Identity = (u64, u64);

impl FolderWatcher {
    /// With file system events, which wake `nudge`.
    pub(crate) fn with_events(nudge: Arc<Notify>) -> Self {
        Self { watcher: antiphon_folder_watch::FolderWatcher::new(move |_| nudge.notify_one()) }
    }

    /// By polling alone.
    pub(crate) fn polling() -> Self {
        Self { watcher: antiphon_folder_watch::FolderWatcher::disabled() }
    }

    /// Watches every existing folder, and no other.
    pub(crate) fn watch_folders(&mut self, folders: &[Folder]) {
        for Folder { path, .. } in folders {
            self.watcher.watch(path, Links::Follow);
        }
    }

    /// What has to be polled.
    pub(crate) fn polled(&self, folders: &[Folder], files: Vec<PathBuf>) -> PolledPaths {
        let watched = |folder: &Folder| self.watcher.is_watched(&folder.path);
        let whole = folders.iter().filter(|folder| !watched(folder)).cloned().collect();
        let folders = folders.iter().map(|folder| folder.path.clone()).collect();
        PolledPaths { folders, whole, files }
    }
}

/// Paths that are polled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PolledPaths {
    /// Folders whose identity is compared.
    folders: Vec<PathBuf>,
    /// Folders whose files are compared.
    whole: Vec<Folder>,
    files: Vec<PathBuf>,
}

/// The state of the polled paths. Two equal states mean that nothing changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PolledState {
    folders: Vec<Option<Identity>>,
    files: Vec<(PathBuf, Option<FileState>)>,
}

/// Identity, size and times of a file: differs after a change.
type FileState = (Identity, u64, (i64, i64), (i64, i64));

impl PolledPaths {
    /// Reads the metadata of the paths. Blocks on the file system.
    pub(crate) fn read_state(&self) -> PolledState {
        let about = |path: &PathBuf| fs::metadata(path).ok().map(|about| identity(&about));
        let mut files: Vec<(PathBuf, Option<FileState>)> = Vec::new();
        for folder in &self.whole {
            let names = folder.open().ok().flatten().and_then(|open| open.names().ok());
            let names = names.map(|names| names.names).unwrap_or_default();
            files.extend(names.iter().map(|name| file_state(&folder.path.join(name))));
        }
        files.extend(self.files.iter().map(|path| file_state(path)));
        PolledState { folders: self.folders.iter().map(about).collect(), files }
    }
}

fn file_state(path: &Path) -> (PathBuf, Option<FileState>) {
    let state = fs::metadata(path).ok().map(|about| {
        let modified = (about.mtime(), about.mtime_nsec());
        (identity(&about), about.size(), modified, (about.ctime(), about.ctime_nsec()))
    });
    (path.to_owned(), state)
}

fn identity(about: &Metadata) -> Identity {
    (about.dev(), about.ino())
}
