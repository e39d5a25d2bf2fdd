//! What each task has seen of which file.
//!
//! A file is only overwritten by a task that has read it as it is now. What was seen is told by
//! the contents where they were read to the end, otherwise by the identity of the file. Nothing of
//! this outlives the process: after a restart a file has to be read again.

use std::collections::HashMap;
use std::hash::{BuildHasher, DefaultHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use antiphon_core::TaskId;

use crate::workspace::Identity;

/// Files remembered of one task. The one that was not looked at for longest is forgotten: it has
/// to be read again before it is overwritten.
pub const SEEN_FILES_MAX: usize = 2_000;

/// Tasks remembered at once. The one that looked at nothing for longest is forgotten.
pub const SEEN_TASKS_MAX: usize = 2_000;

/// What each task has seen of which file.
#[derive(Debug, Default)]
pub struct Seen {
    state: Mutex<State>,
    keys: RandomState,
}

/// One look at a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sight {
    pub(crate) identity: Identity,
    /// Of the contents, if they were read to the end.
    pub(crate) fingerprint: Option<u64>,
}

#[derive(Debug, Default)]
struct State {
    tasks: HashMap<TaskId, Looks>,
    /// Counts looks, so that the oldest can be told.
    now: u64,
}

#[derive(Debug, Default)]
struct Looks {
    files: HashMap<PathBuf, (Sight, u64)>,
    last: u64,
}

impl Seen {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets a task.
    pub fn release(&self, task_id: &TaskId) {
        self.lock().tasks.remove(task_id);
    }

    /// Remembers that a task saw a file like this, or made it so.
    pub(crate) fn note(&self, task_id: &TaskId, path: &Path, sight: Sight) {
        let mut state = self.lock();
        state.now += 1;
        let now = state.now;
        let tasks = &mut state.tasks;
        if !tasks.contains_key(task_id) && tasks.len() >= SEEN_TASKS_MAX {
            forget_oldest(tasks, |looks| looks.last);
        }
        let looks = tasks.entry(task_id.clone()).or_default();
        looks.last = now;
        if !looks.files.contains_key(path) && looks.files.len() >= SEEN_FILES_MAX {
            forget_oldest(&mut looks.files, |(_, at)| *at);
        }
        looks.files.insert(path.to_owned(), (sight, now));
    }

    /// How a task last saw a file.
    pub(crate) fn last(&self, task_id: &TaskId, path: &Path) -> Option<Sight> {
        self.lock().tasks.get(task_id)?.files.get(path).map(|(sight, _)| *sight)
    }

    /// Begins a fingerprint. The contents may be given in pieces of any size.
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

fn forget_oldest<K: Clone + Eq + std::hash::Hash, V>(map: &mut HashMap<K, V>, at: fn(&V) -> u64) {
    let oldest = map.iter().min_by_key(|(_, value)| at(value)).map(|(key, _)| key.clone());
    if let Some(oldest) = oldest {
        map.remove(&oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sight() -> Sight {
        let file = std::fs::File::open("/dev/null").unwrap();
        Sight { identity: Identity::of_file(&file).unwrap(), fingerprint: None }
    }

    fn task(name: &str) -> TaskId {
        TaskId::parse(name).unwrap()
    }

    #[test]
    fn a_fingerprint_does_not_depend_on_the_pieces() {
        let seen = Seen::new();
        let contents: Vec<u8> = (0..=255).cycle().take(10_007).collect();
        for size in [1, 3, 7, 8, 9, 64, 4096] {
            let mut hasher = seen.fingerprint();
            contents.chunks(size).for_each(|piece| hasher.write(piece));
            assert_eq!(hasher.finish(), seen.fingerprint_of(&contents), "pieces of {size}");
        }
    }

    #[test]
    fn the_file_not_looked_at_for_longest_is_forgotten() {
        let (seen, sight, task) = (Seen::new(), sight(), task("t"));
        let path = |i: usize| PathBuf::from(format!("/f{i}"));
        (0..SEEN_FILES_MAX).for_each(|i| seen.note(&task, &path(i), sight));
        seen.note(&task, &path(0), sight);
        seen.note(&task, Path::new("/new"), sight);
        assert_eq!(seen.last(&task, &path(0)), Some(sight));
        assert_eq!(seen.last(&task, &path(1)), None);
        assert_eq!(seen.last(&task, Path::new("/new")), Some(sight));
    }

    #[test]
    fn tasks_are_bounded_and_released() {
        let (seen, sight) = (Seen::new(), sight());
        let name = |i: usize| task(&format!("t{i}"));
        (0..=SEEN_TASKS_MAX).for_each(|i| seen.note(&name(i), Path::new("/f"), sight));
        assert_eq!(seen.last(&name(0), Path::new("/f")), None);
        assert_eq!(seen.last(&name(1), Path::new("/f")), Some(sight));
        seen.release(&name(1));
        assert_eq!(seen.last(&name(1), Path::new("/f")), None);
    }
}
