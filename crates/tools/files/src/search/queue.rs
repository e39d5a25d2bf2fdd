//! Work queue of the threads of a walk.
//!
//! The queue ends when it is empty and no thread is processing a step that could add more. A thread
//! that panics counts as done, so the others do not wait for it.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ffi::CString;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::path::RelPath;
use super::rules::Rules;

/// Pending steps, in order.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    steps: BinaryHeap<Step>,
    /// Threads that may still add steps.
    busy: usize,
}

impl Queue {
    /// Adds steps.
    pub(crate) fn add(&self, steps: impl IntoIterator<Item = Step>) {
        self.lock().steps.extend(steps);
        self.changed.notify_all();
    }

    /// Drops all pending steps.
    pub(crate) fn clear(&self) {
        self.lock().steps.clear();
    }

    /// Waits for the next step; `None` when there will be none.
    pub(crate) fn take(&self) -> Option<StepGuard<'_>> {
        let mut state = self.lock();
        loop {
            if let Some(step) = state.steps.pop() {
                state.busy += 1;
                return Some(StepGuard { queue: self, step });
            }
            if state.busy == 0 {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A step in progress. On drop, also during a panic, it counts as done.
pub(crate) struct StepGuard<'q> {
    queue: &'q Queue,
    pub(crate) step: Step,
}

impl Drop for StepGuard<'_> {
    fn drop(&mut self) {
        self.queue.lock().busy -= 1;
        self.queue.changed.notify_all();
    }
}

/// One unit of work.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) path: RelPath,
    /// Ignore rules of the parent folders.
    pub(crate) rules: Option<Arc<Rules>>,
    pub(crate) work: Work,
}

#[derive(Debug)]
pub(crate) enum Work {
    /// Enter the folder.
    Folder,
    /// Visit files of the folder, which has been listed.
    Files(Vec<CString>),
}

impl Work {
    fn first_name(&self) -> Option<&CString> {
        match self {
            Self::Folder => None,
            Self::Files(names) => names.first(),
        }
    }
}

/// What comes first is the greatest: a heap returns that one.
impl Ord for Step {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_path = other.path.cmp(&self.path);
        by_path.then_with(|| other.work.first_name().cmp(&self.work.first_name()))
    }
}

impl PartialOrd for Step {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Step {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Step {}
