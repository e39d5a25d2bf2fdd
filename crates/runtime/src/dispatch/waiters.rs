//! Which task waits for which tasks, in this process.
//!
//! A waiting task costs a few entries here. It is started when enough of the tasks it waits for
//! have ended. The journal is the truth: after a restart the entries are rebuilt from it, and
//! outcomes are kept here only to save reads.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use antiphon_core::{TaskId, TaskStatus};

use crate::budget::tree::Tree;
use crate::dispatch::pending_call::{Outcome, Outcomes, Wants};

/// All waiting tasks.
#[derive(Debug, Default)]
pub(crate) struct Waiters(Mutex<Book>);

#[derive(Debug, Default)]
struct Book {
    waiting: HashMap<TaskId, Waiting>,
    /// The waiters of each task that has not ended.
    awaited: HashMap<TaskId, Vec<TaskId>>,
}

/// A task that waits for others.
#[derive(Debug, Default)]
struct Waiting {
    hopes: Vec<Hope>,
    ended: Outcomes,
    /// Totals shared with its children, kept alive while none of them runs.
    trees: Vec<Arc<Tree>>,
}

/// One condition under which the waiter is started.
#[derive(Debug)]
struct Hope {
    left: HashSet<TaskId>,
    ends: usize,
    completions: Option<usize>,
    each: bool,
}

impl Waiters {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers `who` as a waiter for `tasks`. It is started when `wants` is reached.
    pub(crate) fn expect(&self, who: &TaskId, tasks: &[TaskId], wants: Wants, trees: &[Arc<Tree>]) {
        let mut book = self.book();
        for task in tasks {
            let waiters = book.awaited.entry(task.clone()).or_default();
            if !waiters.contains(who) {
                waiters.push(who.clone());
            }
        }
        let waiting = book.waiting.entry(who.clone()).or_default();
        if waiting.trees.is_empty() {
            waiting.trees = trees.to_vec();
        }
        let left: HashSet<TaskId> =
            tasks.iter().filter(|task| !waiting.ended.contains_key(*task)).cloned().collect();
        let over = tasks.iter().filter_map(|task| waiting.ended.get(task));
        let completed = over.filter(|outcome| outcome.status == TaskStatus::Completed).count();
        waiting.hopes.push(Hope {
            ends: wants.ends.saturating_sub(tasks.len() - left.len()),
            completions: wants.completions.map(|wanted| wanted.saturating_sub(completed)),
            each: wants.each,
            left,
        });
    }

    /// The tasks for which `who` is not registered and whose outcome it does not have.
    pub(crate) fn unknown(&self, who: &TaskId, tasks: &[TaskId]) -> Vec<TaskId> {
        let book = self.book();
        let ended = book.waiting.get(who).map(|waiting| &waiting.ended);
        let known = |task: &TaskId| {
            ended.is_some_and(|ended| ended.contains_key(task))
                || book.awaited.get(task).is_some_and(|waiters| waiters.contains(who))
        };
        tasks.iter().filter(|task| !known(task)).cloned().collect()
    }

    /// Records for `who` how a task ended.
    pub(crate) fn note(&self, who: &TaskId, task: &TaskId, outcome: Outcome) {
        let mut book = self.book();
        book.waiting.entry(who.clone()).or_default().learn(task, outcome);
        book.dismiss(who, task);
    }

    /// Records that a task has ended. Returns the waiters to start.
    pub(crate) fn ended(&self, task: &TaskId, outcome: &Outcome) -> Vec<TaskId> {
        let mut book = self.book();
        let waiters = book.awaited.remove(task).unwrap_or_default();
        let mut told = Vec::new();
        for who in waiters {
            let Some(waiting) = book.waiting.get_mut(&who) else { continue };
            if waiting.learn(task, outcome.clone()) {
                told.push(who);
            }
        }
        told
    }

    /// Calls `look` with the outcomes that `who` has.
    pub(crate) fn outcomes<T>(&self, who: &TaskId, look: impl FnOnce(&Outcomes) -> T) -> T {
        let book = self.book();
        match book.waiting.get(who) {
            Some(waiting) => look(&waiting.ended),
            None => look(&Outcomes::new()),
        }
    }

    /// Whether `who` waits for a task that has not ended.
    pub(crate) fn waits(&self, who: &TaskId) -> bool {
        self.book()
            .waiting
            .get(who)
            .is_some_and(|waiting| waiting.hopes.iter().any(|hope| !hope.left.is_empty()))
    }

    /// Ends the wait of `who` for these tasks and drops their outcomes.
    pub(crate) fn settle(&self, who: &TaskId, tasks: &[TaskId]) {
        let mut book = self.book();
        for task in tasks {
            book.dismiss(who, task);
        }
        let Some(waiting) = book.waiting.get_mut(who) else { return };
        for task in tasks {
            waiting.ended.remove(task);
        }
        waiting.hopes.retain(|hope| !hope.left.is_empty());
    }

    /// Removes `who`: it has ended.
    pub(crate) fn forget(&self, who: &TaskId) {
        let mut book = self.book();
        let Some(waiting) = book.waiting.remove(who) else { return };
        for task in waiting.hopes.into_iter().flat_map(|hope| hope.left) {
            book.dismiss(who, &task);
        }
    }
}

impl Book {
    fn dismiss(&mut self, who: &TaskId, task: &TaskId) {
        if let Some(waiters) = self.awaited.get_mut(task) {
            waiters.retain(|waiter| waiter != who);
            if waiters.is_empty() {
                self.awaited.remove(task);
            }
        }
    }
}

impl Waiting {
    /// Returns whether a condition is met.
    fn learn(&mut self, task: &TaskId, outcome: Outcome) -> bool {
        let completed = outcome.status == TaskStatus::Completed;
        self.ended.insert(task.clone(), outcome);
        let mut told = false;
        for hope in &mut self.hopes {
            if !hope.left.remove(task) {
                continue;
            }
            hope.ends = hope.ends.saturating_sub(1);
            if completed && let Some(wanted) = &mut hope.completions {
                *wanted = wanted.saturating_sub(1);
            }
            told |=
                hope.each || hope.ends == 0 || hope.completions == Some(0) || hope.left.is_empty();
        }
        told
    }
}
