//! Collects the matches of all threads.
//!
//! Only the first matches by path are kept, in any order of the threads' reports, so the result
//! is deterministic. Once there are enough, files after the last kept one need not be searched.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::hits::Hits;
use crate::search::{OUTPUT_BYTES_MAX, RelPath};

/// Matches found so far.
#[derive(Debug)]
pub(crate) struct Matches {
    state: Mutex<State>,
    /// Matches to show; the search looks for one more, to know whether there are more.
    limit: usize,
    has_enough: AtomicBool,
}

/// The first files by path.
#[derive(Debug, Default)]
struct State {
    files: BTreeMap<RelPath, Hits>,
    count: usize,
    bytes: usize,
}

impl Matches {
    pub(crate) fn new(limit: usize) -> Self {
        Self { state: Mutex::default(), limit, has_enough: AtomicBool::new(false) }
    }

    /// Adds the matches of a file.
    pub(crate) fn add(&self, path: &[u8], hits: Hits) {
        let mut state = self.lock();
        state.count += hits.count();
        state.bytes += hits.text.len();
        state.files.insert(RelPath(path.to_vec()), hits);
        while let Some((_, last)) = state.files.last_key_value() {
            let (count, bytes) = (state.count - last.count(), state.bytes - last.text.len());
            if count <= self.limit && bytes <= OUTPUT_BYTES_MAX {
                break;
            }
            (state.count, state.bytes) = (count, bytes);
            state.files.pop_last();
        }
        if state.count > self.limit || state.bytes > OUTPUT_BYTES_MAX {
            self.has_enough.store(true, Ordering::Relaxed);
        }
    }

    /// Whether matches at `path` or beneath it would not be shown.
    pub(crate) fn is_past(&self, path: &[u8]) -> bool {
        self.has_enough.load(Ordering::Relaxed)
            && self.lock().files.last_key_value().is_some_and(|(last, _)| last.is_before(path))
    }

    /// The matches in order, and whether there may be more.
    pub(crate) fn into_files(self) -> (BTreeMap<RelPath, Hits>, bool) {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        (state.files, self.has_enough.into_inner())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grep::hits::Mark;

    fn hits(count: usize) -> Hits {
        Hits { text: String::new(), marks: vec![Mark::default(); count], matches: count as u64 }
    }

    #[test]
    fn the_first_by_path_are_kept_in_any_order_of_arrival() {
        let files = [("a", 2), ("b/c", 3), ("b.txt", 1), ("d", 4), ("e", 1)];
        let mut orders = vec![files.to_vec()];
        orders.push(files.iter().rev().copied().collect());
        orders.push([2, 4, 0, 3, 1].map(|index| files[index]).to_vec());
        for order in orders {
            let found = Matches::new(5);
            for (path, count) in order {
                if !found.is_past(path.as_bytes()) {
                    found.add(path.as_bytes(), hits(count));
                }
            }
            assert!(found.is_past(b"c") && !found.is_past(b"b"));
            let (kept, has_more) = found.into_files();
            let paths: Vec<_> = kept.into_keys().map(|path| path.0).collect();
            assert_eq!(paths, [b"a".to_vec(), b"b/c".to_vec(), b"b.txt".to_vec()]);
            assert!(has_more);
        }
    }

    #[test]
    fn exactly_as_many_as_are_shown_is_not_more() {
        let found = Matches::new(5);
        found.add(b"a", hits(2));
        found.add(b"b", hits(3));
        assert!(!found.is_past(b"c"));
        let (kept, has_more) = found.into_files();
        assert_eq!((kept.len(), has_more), (2, false));
    }
}
