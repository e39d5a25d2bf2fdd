//! Changes in folders of requests: reported by the system, and found by a scan of everything now
//! and then.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use antiphon_folder_watch::{Change, FolderWatcher};
use tokio::sync::Notify;

use crate::folder::name::is_request;

/// Most changed files that are queued. Above the limit, everything is scanned.
const CHANGED_MAX: usize = 4096;

/// Files to read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ChangedFiles {
    pub(crate) everything: bool,
    pub(crate) files: BTreeSet<PathBuf>,
}

impl ChangedFiles {
    pub(crate) fn everything() -> Self {
        Self { everything: true, files: BTreeSet::new() }
    }

    pub(crate) fn is_nothing(&self) -> bool {
        !self.everything && self.files.is_empty()
    }

    pub(crate) fn add(&mut self, file: PathBuf) {
        if self.everything {
            return;
        }
        self.files.insert(file);
        if self.files.len() > CHANGED_MAX {
            *self = Self::everything();
        }
    }

    pub(crate) fn merge(&mut self, other: Self) {
        if other.everything {
            *self = Self::everything();
        } else {
            other.files.into_iter().for_each(|file| self.add(file));
        }
    }
}

/// Changes that are not scanned yet.
#[derive(Debug, Default)]
pub(crate) struct ChangeQueue {
    changed: Mutex<ChangedFiles>,
    wake: Notify,
}

impl ChangeQueue {
    /// Waits for a change. Cancel safe.
    pub(crate) async fn changed(&self) {
        self.wake.notified().await;
    }

    pub(crate) fn take(&self) -> ChangedFiles {
        std::mem::take(&mut *self.changed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn update(&self, change: impl FnOnce(&mut ChangedFiles)) {
        change(&mut self.changed.lock().unwrap_or_else(PoisonError::into_inner));
        self.wake.notify_one();
    }
}

/// Watches the folders of requests, and one level below, as far as the system reports changes.
pub(crate) fn watcher(changes: Arc<ChangeQueue>, roots: Vec<PathBuf>) -> FolderWatcher {
    FolderWatcher::new(move |change| match change {
        Change::Written(paths) => {
            for path in paths {
                queue_change(&changes, &roots, path);
            }
        }
        // A deleted file asks for nothing.
        Change::Removed(_) => {}
        Change::Unknown => changes.update(|changed| changed.everything = true),
    })
}

fn queue_change(changes: &ChangeQueue, roots: &[PathBuf], path: PathBuf) {
    let folder = path.parent();
    let is_file_of_requester =
        folder.and_then(Path::parent).is_some_and(|root| roots.iter().any(|it| it == root));
    if !is_file_of_requester {
        // A requester's folder, or a folder of requests.
        changes.update(|changed| *changed = ChangedFiles::everything());
    } else if path.file_name().is_some_and(|name| is_request(name.as_bytes())) {
        changes.update(|changed| changed.add(path));
    }
}
