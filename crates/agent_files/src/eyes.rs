//! How changes of folders are seen: the system tells of folders that are there, and whatever it does
//! not tell of is looked at again and again.
//!
//! Not told of are folders that are not there yet, folders that were put in place of others, files in
//! other folders, and everything where the system has no more watches to give.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

use crate::folder::Folder;

/// Sees changes of folders.
pub(crate) struct Eyes {
    watcher: Option<RecommendedWatcher>,
    /// Folders that the system tells of, and which ones they were.
    watched: BTreeMap<PathBuf, Identity>,
}

/// Tells one folder from another that is put in its place.
type Identity = (u64, u64);

impl Eyes {
    /// Told by the system, which wakes `nudge`.
    pub(crate) fn told(nudge: Arc<Notify>) -> Self {
        let wake = move |event: notify::Result<notify::Event>| {
            if event.map_or(true, |event| matters(event.kind)) {
                nudge.notify_one();
            }
        };
        Self { watcher: notify::recommended_watcher(wake).ok(), watched: BTreeMap::new() }
    }

    /// Told by nobody.
    pub(crate) fn looking() -> Self {
        Self { watcher: None, watched: BTreeMap::new() }
    }

    /// Asks the system to tell of every folder that is there, and of those only.
    pub(crate) fn turn_to(&mut self, folders: &[Folder]) {
        let Some(watcher) = &mut self.watcher else { return };
        for Folder { path, .. } in folders {
            // Taken before it is watched: one that is put in its place meanwhile is another.
            let now =
                fs::metadata(path).ok().filter(Metadata::is_dir).map(|about| identity(&about));
            if now.as_ref() == self.watched.get(path) {
                continue;
            }
            if self.watched.remove(path).is_some() {
                // It may be gone already, and its watch with it.
                let _ = watcher.unwatch(path);
            }
            if let Some(now) = now
                && watcher.watch(path, RecursiveMode::NonRecursive).is_ok()
            {
                self.watched.insert(path.clone(), now);
            }
        }
    }

    /// What there is to look at, of all that the system does not tell of.
    pub(crate) fn sight(&self, folders: &[Folder], beside: Vec<PathBuf>) -> Sight {
        let watched = |folder: &Folder| self.watched.contains_key(&folder.path);
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

/// Whether something may be different. Reading a file is no change of it.
fn matters(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write))
        | EventKind::Any
        | EventKind::Create(_)
        | EventKind::Modify(_)
        | EventKind::Remove(_)
        | EventKind::Other => true,
        EventKind::Access(_) => false,
    }
}
