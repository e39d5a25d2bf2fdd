//! Watches folders for changes with the system's notifications.
//!
//! The system reports changes in folders that exist when they are watched, not in their subfolders. It
//! may run out of watches, and on some file systems it reports nothing. A caller therefore also scans
//! now and then: [`FolderWatcher::is_watched`] says which folders are covered.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

/// What the system reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// These paths are new, or their content, name or metadata changed.
    Written(Vec<PathBuf>),
    /// These paths are gone.
    Removed(Vec<PathBuf>),
    /// Reports were lost: anything may have changed.
    Unknown,
}

/// What a path that is a symbolic link to a folder stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// The folder it leads to.
    Follow,
    /// Itself. A link that is replaced by another link is watched anew.
    Keep,
}

/// Watches folders until it is dropped.
pub struct FolderWatcher {
    watcher: Option<RecommendedWatcher>,
    watched: BTreeMap<PathBuf, Identity>,
}

/// Device and inode: a folder that replaces another has a different identity.
type Identity = (u64, u64);

impl FolderWatcher {
    /// Calls `on_change` on a thread of its own for each change. Watches nothing yet.
    ///
    /// Where the system has no notifications to give, no folder is ever watched.
    pub fn new(mut on_change: impl FnMut(Change) + Send + 'static) -> Self {
        let handle = move |event: notify::Result<Event>| {
            if let Some(change) = change(event) {
                on_change(change);
            }
        };
        Self { watcher: notify::recommended_watcher(handle).ok(), watched: BTreeMap::new() }
    }

    /// Watches nothing: the caller scans.
    pub fn disabled() -> Self {
        Self { watcher: None, watched: BTreeMap::new() }
    }

    /// Watches a folder from now on: a scan that starts after this call misses no change. A folder that
    /// replaced a watched one is watched in its place; one that is gone is forgotten. Returns whether
    /// it is watched.
    pub fn watch(&mut self, path: &Path, links: Links) -> bool {
        let Some(watcher) = &mut self.watcher else { return false };
        let metadata = match links {
            Links::Follow => fs::metadata(path).ok().filter(fs::Metadata::is_dir),
            Links::Keep => fs::symlink_metadata(path).ok(),
        };
        // Read before the watch is set: a folder that replaces this one meanwhile has another identity.
        let identity = metadata.map(|found| (found.dev(), found.ino()));
        if identity.as_ref() == self.watched.get(path) {
            return identity.is_some();
        }
        if self.watched.remove(path).is_some() {
            // A removed folder has lost its watch already.
            let _ = watcher.unwatch(path);
        }
        let Some(identity) = identity else { return false };
        if watcher.watch(path, RecursiveMode::NonRecursive).is_err() {
            return false;
        }
        self.watched.insert(path.to_owned(), identity);
        true
    }

    /// Stops watching the folders for which `is_obsolete` holds.
    pub fn unwatch(&mut self, is_obsolete: impl Fn(&Path) -> bool) {
        let Some(watcher) = &mut self.watcher else { return };
        self.watched.retain(|path, _| {
            let obsolete = is_obsolete(path);
            if obsolete {
                let _ = watcher.unwatch(path);
            }
            !obsolete
        });
    }

    /// Whether the last [`FolderWatcher::watch`] of this path succeeded.
    pub fn is_watched(&self, path: &Path) -> bool {
        self.watched.contains_key(path)
    }
}

/// `None` for an event that changes nothing, such as a read.
fn change(event: notify::Result<Event>) -> Option<Change> {
    let Ok(event) = event else { return Some(Change::Unknown) };
    if event.need_rescan() {
        return Some(Change::Unknown);
    }
    match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write))
        | EventKind::Any
        | EventKind::Create(_)
        | EventKind::Modify(_)
        | EventKind::Other => Some(Change::Written(event.paths)),
        EventKind::Remove(_) => Some(Change::Removed(event.paths)),
        EventKind::Access(_) => None,
    }
}
