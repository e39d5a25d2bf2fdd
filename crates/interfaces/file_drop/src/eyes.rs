//! How changes are seen: the system tells of them, and what it cannot tell of is found by looking
//! at everything now and then.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

use crate::name::is_request;

/// Most files that are remembered as changed. Beyond that, everything is looked at.
const CHANGED_MAX: usize = 4096;

/// What is worth a look.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Changed {
    pub(crate) everything: bool,
    pub(crate) files: BTreeSet<PathBuf>,
}

impl Changed {
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

/// Where changes are noted until somebody looks.
#[derive(Debug, Default)]
pub(crate) struct Notebook {
    changed: Mutex<Changed>,
    nudge: Notify,
}

impl Notebook {
    /// Waits for a change. Cancel safe.
    pub(crate) async fn changed(&self) {
        self.nudge.notified().await;
    }

    pub(crate) fn take(&self) -> Changed {
        std::mem::take(&mut *self.changed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, change: impl FnOnce(&mut Changed)) {
        change(&mut self.changed.lock().unwrap_or_else(PoisonError::into_inner));
        self.nudge.notify_one();
    }
}

/// Sees changes in folders.
pub(crate) struct Eyes {
    watcher: Option<RecommendedWatcher>,
    /// Folders that the system tells of, and which ones they were.
    watched: BTreeMap<PathBuf, (u64, u64)>,
}

impl Eyes {
    /// Told by the system, as far as it can, of what happens in these folders and one below.
    pub(crate) fn told(notebook: Arc<Notebook>, bases: Vec<PathBuf>) -> Self {
        let hear = move |event: notify::Result<Event>| match event {
            Ok(event) if event.need_rescan() => notebook.note(|it| it.everything = true),
            Ok(event) if matters(event.kind) => hear(&notebook, &bases, event),
            Ok(_) => {}
            Err(_) => notebook.note(|it| it.everything = true),
        };
        Self { watcher: notify::recommended_watcher(hear).ok(), watched: BTreeMap::new() }
    }

    /// Told by nobody.
    pub(crate) fn closed() -> Self {
        Self { watcher: None, watched: BTreeMap::new() }
    }

    /// Asks the system to tell of a folder. Whoever reads it afterwards misses nothing.
    pub(crate) fn turn_to(&mut self, path: &Path) {
        use std::os::unix::fs::MetadataExt;
        let Some(watcher) = &mut self.watcher else { return };
        let Ok(about) = std::fs::symlink_metadata(path) else { return };
        let identity = (about.dev(), about.ino());
        if self.watched.get(path) == Some(&identity) {
            return;
        }
        if self.watched.remove(path).is_some() {
            // It may be gone already, and its watch with it.
            let _ = watcher.unwatch(path);
        }
        match watcher.watch(path, RecursiveMode::NonRecursive) {
            Ok(()) => {
                self.watched.insert(path.to_owned(), identity);
            }
            Err(error) => {
                tracing::debug!(folder = %path.display(), %error, "looked at now and then only");
            }
        }
    }

    /// Asks for nothing in these folders any more, but for those that are kept.
    pub(crate) fn turn_from(&mut self, gone: impl Fn(&Path) -> bool) {
        let Some(watcher) = &mut self.watcher else { return };
        self.watched.retain(|path, _| {
            let gone = gone(path);
            if gone {
                let _ = watcher.unwatch(path);
            }
            !gone
        });
    }
}

fn hear(notebook: &Notebook, bases: &[PathBuf], event: Event) {
    for path in event.paths {
        let folder = path.parent();
        let is_file_of_requester =
            folder.and_then(Path::parent).is_some_and(|base| bases.iter().any(|it| it == base));
        if !is_file_of_requester {
            // A requester's folder, or the folder of all of them.
            notebook.note(|it| *it = Changed::everything());
        } else if path.file_name().is_some_and(|name| is_request(name.as_bytes())) {
            notebook.note(|it| it.add(path));
        }
    }
}

/// Whether there may be something to read. Taking a file away asks for nothing.
fn matters(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write))
        | EventKind::Any
        | EventKind::Create(_)
        | EventKind::Modify(_)
        | EventKind::Other => true,
        EventKind::Access(_) | EventKind::Remove(_) => false,
    }
}
