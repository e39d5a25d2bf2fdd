//! How changes of folders are seen: the system tells of folders that are there, and whatever it does
//! not tell of is looked at again and again.
//!
//! Not told of are folders that are not there yet, folders that were put in place of others, files in
//! other folders, and everything where the system has no more watches to give.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use antiphon_folder_watch::{FolderWatcher, Links};
use tokio::sync::Notify;

use crate::folder::Folder;

/// Sees changes of folders.
pub(crate) struct Eyes {
    watcher: FolderWatcher,
}

/// Tells one folder from another that is put in its place.
type Identity = (u64, u64);

impl Eyes {
    /// Told by the system, which wakes `nudge`.
    pub(crate) fn told(nudge: Arc<Notify>) -> Self {
        Self { watcher: FolderWatcher::new(move |_| nudge.notify_one()) }
    }

    /// Told by nobody.
    pub(crate) fn looking() -> Self {
        Self { watcher: FolderWatcher::disabled() }
    }

    /// Asks the system to tell of every folder that is there, and of those only.
    pub(crate) fn turn_to(&mut self, folders: &[Folder]) {
        for Folder { path, .. } in folders {
            self.watcher.watch(path, Links::Follow);
        }
    }

    /// What there is to look at, of all that the system does not tell of.
    pub(crate) fn sight(&self, folders: &[Folder], beside: Vec<PathBuf>) -> Sight {
        let watched = |folder: &Folder| self.watcher.is_watched(&folder.path);
        let whole = folders.iter().filter(|folder| !watched(folder)).cloned().collect();
        let folders = folders.iter().map(|folder| folder.path.clone()).collect();
        Sight { folders, whole, files: beside }
    }
}

/// What is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sight {
    /// Folders that may be replaced.
    folders: Vec<PathBuf>,
    /// Folders with everything in them.
    whole: Vec<Folder>,
    files: Vec<PathBuf>,
}

/// What was seen: another look that sees the same is equal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    folders: Vec<Option<Identity>>,
    files: Vec<(PathBuf, Option<Mark>)>,
}

/// Tells one state of a file from another.
type Mark = (Identity, u64, (i64, i64), (i64, i64));

impl Sight {
    /// Looks. Blocks on files, and reads none.
    pub(crate) fn look(&self) -> Seen {
        let about = |path: &PathBuf| fs::metadata(path).ok().map(|about| identity(&about));
        let mut files: Vec<(PathBuf, Option<Mark>)> = Vec::new();
        for folder in &self.whole {
            let names = folder.open().ok().flatten().and_then(|open| open.names().ok());
            let names = names.map(|names| names.names).unwrap_or_default();
            files.extend(names.iter().map(|name| marked(&folder.path.join(name))));
        }
        files.extend(self.files.iter().map(|path| marked(path)));
        Seen { folders: self.folders.iter().map(about).collect(), files }
    }
}

fn marked(path: &Path) -> (PathBuf, Option<Mark>) {
    let mark = fs::metadata(path).ok().map(|about| {
        let modified = (about.mtime(), about.mtime_nsec());
        (identity(&about), about.size(), modified, (about.ctime(), about.ctime_nsec()))
    });
    (path.to_owned(), mark)
}

fn identity(about: &Metadata) -> Identity {
    (about.dev(), about.ino())
}
