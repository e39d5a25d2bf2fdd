//! Collects the newest of all visited files.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Mutex, PoisonError};

use crate::search::{Modified, RelPath};

/// The newest files, and the number of all files. Of two files of the same age, the first by path
/// counts as newer.
#[derive(Debug)]
pub(crate) struct NewestFiles {
    limit: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The oldest kept file is on top.
    files: BinaryHeap<(Reverse<Modified>, RelPath)>,
    total: u64,
}

impl NewestFiles {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, state: Mutex::default() }
    }

    pub(crate) fn add(&self, modified: Modified, path: &[u8]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.total += 1;
        let is_full = state.files.len() >= self.limit;
        if is_full && state.files.peek().is_some_and(|(Reverse(oldest), _)| modified < *oldest) {
            return;
        }
        state.files.push((Reverse(modified), RelPath(path.to_vec())));
        if is_full {
            state.files.pop();
        }
    }

    /// The newest first, and how many there are in all.
    pub(crate) fn into_files(self) -> (Vec<RelPath>, u64) {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let files = state.files.into_sorted_vec();
        (files.into_iter().map(|(_, path)| path).collect(), state.total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_and_all_are_counted() {
        let newest = NewestFiles::new(3);
        for (seconds, path) in [(1, "old"), (5, "b"), (5, "a"), (9, "new"), (2, "older"), (5, "c")]
        {
            newest.add((seconds, 0), path.as_bytes());
        }
        let (files, total) = newest.into_files();
        let files: Vec<_> =
            files.into_iter().map(|path| String::from_utf8(path.0).unwrap()).collect();
        assert_eq!((files, total), (["new", "a", "b"].map(String::from).to_vec(), 6));
    }
}
