//! Who waits for which task, as long as this process runs.
//!
//! A task that waits for others costs a few rows here and nothing else: it is taken up again when
//! what it waits for is worth a look. Nothing here is the truth: after a restart it is made anew from
//! the journal, and how a task ended is only kept here so that it need not be read again.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use antiphon_core::{TaskId, TaskStatus};

use crate::budget::tree::Tree;
use crate::dispatch::pending_call::{Outcome, Outcomes, Wants};

/// Everybody who waits.
#[derive(Debug, Default)]
pub(crate) struct Waiters(Mutex<Book>);

#[derive(Debug, Default)]
struct Book {
    waiting: HashMap<TaskId, Waiting>,
    /// Who waits for a task that has not ended.
    awaited: HashMap<TaskId, Vec<TaskId>>,
}

/// A task that waits for others.
#[derive(Debug, Default)]
struct Waiting {
    hopes: Vec<Hope>,
    ended: Outcomes,
    /// What its children use up together, kept while none of them runs.
    trees: Vec<Arc<Tree>>,
}

/// One thing it waits for.
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

    /// From now on it is noted for `who` when one of these ends, and they are told when `wants`
    /// is reached.
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

    /// Which of these nobody has noted for `who`: neither that they ended nor that it waits.
    pub(crate) fn unknown(&self, who: &TaskId, tasks: &[TaskId]) -> Vec<TaskId> {
        let book = self.book();
        let ended = book.waiting.get(who).map(|waiting| &waiting.ended);
        let known = |task: &TaskId| {
            ended.is_some_and(|ended| ended.contains_key(task))
                || book.awaited.get(task).is_some_and(|waiters| waiters.contains(who))
        };
        tasks.iter().filter(|task| !known(task)).cloned().collect()
    }

    /// Notes for `who` how a task ended.
    pub(crate) fn note(&self, who: &TaskId, task: &TaskId, outcome: Outcome) {
        let mut book = self.book();
        book.waiting.entry(who.clone()).or_default().learn(task, outcome);
        book.dismiss(who, task);
    }

    /// A task has ended. Says who should look.
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

    /// Looks at what has ended of what `who` waits for.
    pub(crate) fn outcomes<T>(&self, who: &TaskId, look: impl FnOnce(&Outcomes) -> T) -> T {
        let book = self.book();
        match book.waiting.get(who) {
            Some(waiting) => look(&waiting.ended),
            None => look(&Outcomes::new()),
        }
    }

    /// Whether somebody waits and will be told.
    pub(crate) fn waits(&self, who: &TaskId) -> bool {
        self.book()
            .waiting
            .get(who)
            .is_some_and(|waiting| waiting.hopes.iter().any(|hope| !hope.left.is_empty()))
    }

    /// Nobody waits for these on behalf of `who` any more.
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

    /// `who` waits for nobody any more: it has ended.
    pub(crate) fn forget(&self, who: &TaskId) {
        let mut book = self.book();
        let Some(waiting) = book.waiting.remove(who) else { return };
        for task in waiting.hopes.into_iter().flat_map(|hope| hope.left) {
            book.dismiss(who, &task);
        }
    }
}

impl Book {
    /// `who` waits for that task no longer.
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
    /// Says whether that is worth a look.
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
