//! Which version of each file a task has read.
//!
//! A task may only overwrite a file whose current version it has read. A version is known by the
//! contents when they were read to the end, otherwise by the identity of the file. The record lives
//! in memory: after a restart a task must read a file again.

use std::collections::HashMap;
use std::hash::{BuildHasher, DefaultHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use antiphon_core::TaskId;

use crate::workspace::Identity;

/// Most files recorded for one task. Beyond it, the file with the oldest access is dropped: the task
/// must read it again before it overwrites it.
pub const TRACKED_FILES_MAX: usize = 2_000;

/// Most tasks recorded at once. Beyond it, the task with the oldest access is dropped.
pub const TRACKED_TASKS_MAX: usize = 2_000;

/// Records which version of each file a task has read.
#[derive(Debug, Default)]
pub struct ReadTracker {
    state: Mutex<State>,
    keys: RandomState,
}

/// A version of a file, as a task read or wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileVersion {
    pub(crate) identity: Identity,
    /// Hash of the contents. `None` when they were not read to the end.
    pub(crate) fingerprint: Option<u64>,
}

#[derive(Debug, Default)]
struct State {
    tasks: HashMap<TaskId, TaskReads>,
    /// Counts accesses, so that the oldest is known.
    now: u64,
}

#[derive(Debug, Default)]
struct TaskReads {
    files: HashMap<PathBuf, (FileVersion, u64)>,
    last: u64,
}

impl ReadTracker {
    /// An empty record.
    pub fn new() -> Self {
        Self::default()
    }

    /// Drops the record of a task.
    pub fn release(&self, task_id: &TaskId) {
        self.lock().tasks.remove(task_id);
    }

    /// Records that a task has read or written this version of a file.
    pub(crate) fn note(&self, task_id: &TaskId, path: &Path, version: FileVersion) {
        let mut state = self.lock();
        state.now += 1;
        let now = state.now;
        let tasks = &mut state.tasks;
        if !tasks.contains_key(task_id) && tasks.len() >= TRACKED_TASKS_MAX {
            drop_oldest(tasks, |task| task.last);
        }
        let task = tasks.entry(task_id.clone()).or_default();
        task.last = now;
        if !task.files.contains_key(path) && task.files.len() >= TRACKED_FILES_MAX {
            drop_oldest(&mut task.files, |(_, at)| *at);
        }
        task.files.insert(path.to_owned(), (version, now));
    }

    /// The version of a file that a task last read or wrote.
    pub(crate) fn last(&self, task_id: &TaskId, path: &Path) -> Option<FileVersion> {
        self.lock().tasks.get(task_id)?.files.get(path).map(|(version, _)| *version)
    }

    /// Starts a fingerprint. The contents may be given in pieces of any size.
    pub(crate) fn fingerprint(&self) -> DefaultHasher {
        self.keys.build_hasher()
    }

    /// The fingerprint of contents.
    pub(crate) fn fingerprint_of(&self, contents: &[u8]) -> u64 {
        let mut hasher = self.fingerprint();
        hasher.write(contents);
        hasher.finish()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn drop_oldest<K: Clone + Eq + std::hash::Hash, V>(map: &mut HashMap<K, V>, at: fn(&V) -> u64) {
    let oldest = map.iter().min_by_key(|(_, value)| at(value)).map(|(key, _)| key.clone());
    if let Some(oldest) = oldest {
        map.remove(&oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version() -> FileVersion {
        let file = std::fs::File::open("/dev/null").unwrap();
        FileVersion { identity: Identity::of_file(&file).unwrap(), fingerprint: None }
    }

    fn task(name: &str) -> TaskId {
        TaskId::parse(name).unwrap()
    }

    #[test]
    fn a_fingerprint_does_not_depend_on_the_pieces() {
        let reads = ReadTracker::new();
        let contents: Vec<u8> = (0..=255).cycle().take(10_007).collect();
        for size in [1, 3, 7, 8, 9, 64, 4096] {
            let mut hasher = reads.fingerprint();
            contents.chunks(size).for_each(|piece| hasher.write(piece));
            assert_eq!(hasher.finish(), reads.fingerprint_of(&contents), "pieces of {size}");
        }
    }

    #[test]
    fn the_file_with_the_oldest_access_is_dropped() {
        let (reads, version, task) = (ReadTracker::new(), version(), task("t"));
        let path = |i: usize| PathBuf::from(format!("/f{i}"));
        (0..TRACKED_FILES_MAX).for_each(|i| reads.note(&task, &path(i), version));
        reads.note(&task, &path(0), version);
        reads.note(&task, Path::new("/new"), version);
        assert_eq!(reads.last(&task, &path(0)), Some(version));
        assert_eq!(reads.last(&task, &path(1)), None);
        assert_eq!(reads.last(&task, Path::new("/new")), Some(version));
    }

    #[test]
    fn tasks_are_bounded_and_released() {
        let (reads, version) = (ReadTracker::new(), version());
        let name = |i: usize| task(&format!("t{i}"));
        (0..=TRACKED_TASKS_MAX).for_each(|i| reads.note(&name(i), Path::new("/f"), version));
        assert_eq!(reads.last(&name(0), Path::new("/f")), None);
        assert_eq!(reads.last(&name(1), Path::new("/f")), Some(version));
        reads.release(&name(1));
        assert_eq!(reads.last(&name(1), Path::new("/f")), None);
    }
}
