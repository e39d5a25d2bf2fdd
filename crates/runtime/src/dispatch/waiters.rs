//! Which task waits for which tasks, in this process.
//!
//! A waiting task costs a few entries here. It is started when enough of the tasks it waits for
//! have ended. The journal is the truth: after a restart the entries are rebuilt from it, and
//! outcomes are kept here only to save reads.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use antiphon_core::{TaskId, TaskStatus};

use crate::budget::tree_usage::Tree;
use crate::dispatch::pending_call::{Outcomes, TaskOutcome, WaitGoal};

/// All waiting tasks.
#[derive(Debug, Default)]
pub(crate) struct Waiters(Mutex<WaitTable>);

#[derive(Debug, Default)]
struct WaitTable {
    waiting: HashMap<TaskId, Waiter>,
    /// The waiters of each task that has not ended.
    awaited: HashMap<TaskId, Vec<TaskId>>,
}

/// A task that waits for others.
#[derive(Debug, Default)]
struct Waiter {
    conditions: Vec<WaitCondition>,
    ended: Outcomes,
    /// Totals shared with its children, kept alive while none of them runs.
    trees: Vec<Arc<Tree>>,
}

/// One condition under which the waiter is started.
#[derive(Debug)]
struct WaitCondition {
    remaining: HashSet<TaskId>,
    ends: usize,
    completions: Option<usize>,
    notify_each: bool,
}

impl Waiters {
    fn table(&self) -> MutexGuard<'_, WaitTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers `waiter` as a waiter for `tasks`. It is started when `goal` is reached.
    pub(crate) fn register(
        &self,
        waiter: &TaskId,
        tasks: &[TaskId],
        goal: WaitGoal,
        trees: &[Arc<Tree>],
    ) {
        let mut table = self.table();
        for task in tasks {
            let waiters = table.awaited.entry(task.clone()).or_default();
            if !waiters.contains(waiter) {
                waiters.push(waiter.clone());
            }
        }
        let waiting = table.waiting.entry(waiter.clone()).or_default();
        if waiting.trees.is_empty() {
            waiting.trees = trees.to_vec();
        }
        let remaining: HashSet<TaskId> =
            tasks.iter().filter(|task| !waiting.ended.contains_key(*task)).cloned().collect();
        let over = tasks.iter().filter_map(|task| waiting.ended.get(task));
        let completed = over.filter(|outcome| outcome.status == TaskStatus::Completed).count();
        waiting.conditions.push(WaitCondition {
            ends: goal.ends.saturating_sub(tasks.len() - remaining.len()),
            completions: goal.completions.map(|wanted| wanted.saturating_sub(completed)),
            notify_each: goal.notify_each,
            remaining,
        });
    }

    /// The tasks for which `waiter` is not registered and whose outcome it does not have.
    pub(crate) fn not_registered(&self, waiter: &TaskId, tasks: &[TaskId]) -> Vec<TaskId> {
        let table = self.table();
        let ended = table.waiting.get(waiter).map(|waiting| &waiting.ended);
        let known = |task: &TaskId| {
            ended.is_some_and(|ended| ended.contains_key(task))
                || table.awaited.get(task).is_some_and(|waiters| waiters.contains(waiter))
        };
        tasks.iter().filter(|task| !known(task)).cloned().collect()
    }

    /// Records for `waiter` how a task ended.
    pub(crate) fn record_outcome(&self, waiter: &TaskId, task: &TaskId, outcome: TaskOutcome) {
        let mut table = self.table();
        table.waiting.entry(waiter.clone()).or_default().add_outcome(task, outcome);
        table.remove_waiter(waiter, task);
    }

    /// Records that a task has ended. Returns the waiters to start.
    pub(crate) fn ended(&self, task: &TaskId, outcome: &TaskOutcome) -> Vec<TaskId> {
        let mut table = self.table();
        let waiters = table.awaited.remove(task).unwrap_or_default();
        let mut started = Vec::new();
        for waiter in waiters {
            let Some(waiting) = table.waiting.get_mut(&waiter) else { continue };
            if waiting.add_outcome(task, outcome.clone()) {
                started.push(waiter);
            }
        }
        started
    }

    /// Calls `look` with the outcomes that `waiter` has.
    pub(crate) fn outcomes<T>(&self, waiter: &TaskId, look: impl FnOnce(&Outcomes) -> T) -> T {
        let table = self.table();
        match table.waiting.get(waiter) {
            Some(waiting) => look(&waiting.ended),
            None => look(&Outcomes::new()),
        }
    }

    /// Whether `waiter` waits for a task that has not ended.
    pub(crate) fn waits(&self, waiter: &TaskId) -> bool {
        self.table().waiting.get(waiter).is_some_and(|waiting| {
            waiting.conditions.iter().any(|condition| !condition.remaining.is_empty())
        })
    }

    /// The tasks without whose end `waiter` cannot go on.
    pub(crate) fn needed_by(&self, waiter: &TaskId) -> Vec<TaskId> {
        let table = self.table();
        let conditions = table.waiting.get(waiter).into_iter().flat_map(|it| &it.conditions);
        let needs_all = |condition: &&WaitCondition| {
            let left = condition.remaining.len();
            let all = condition.completions.is_none() && condition.ends >= left;
            !condition.notify_each && (all || left == 1)
        };
        conditions.filter(needs_all).flat_map(|it| it.remaining.iter().cloned()).collect()
    }

    /// Ends the wait of `waiter` for these tasks and drops their outcomes.
    pub(crate) fn stop_waiting(&self, waiter: &TaskId, tasks: &[TaskId]) {
        let mut table = self.table();
        for task in tasks {
            table.remove_waiter(waiter, task);
        }
        let Some(waiting) = table.waiting.get_mut(waiter) else { return };
        for task in tasks {
            waiting.ended.remove(task);
        }
        waiting.conditions.retain(|condition| !condition.remaining.is_empty());
    }

    /// Removes `waiter`: it has ended.
    pub(crate) fn remove(&self, waiter: &TaskId) {
        let mut table = self.table();
        let Some(waiting) = table.waiting.remove(waiter) else { return };
        for task in waiting.conditions.into_iter().flat_map(|condition| condition.remaining) {
            table.remove_waiter(waiter, &task);
        }
    }
}

impl WaitTable {
    fn remove_waiter(&mut self, waiter: &TaskId, task: &TaskId) {
        if let Some(waiters) = self.awaited.get_mut(task) {
            waiters.retain(|other| other != waiter);
            if waiters.is_empty() {
                self.awaited.remove(task);
            }
        }
    }
}

impl Waiter {
    /// Returns whether a condition is met.
    fn add_outcome(&mut self, task: &TaskId, outcome: TaskOutcome) -> bool {
        let completed = outcome.status == TaskStatus::Completed;
        self.ended.insert(task.clone(), outcome);
        let mut started = false;
        for condition in &mut self.conditions {
            if !condition.remaining.remove(task) {
                continue;
            }
            condition.ends = condition.ends.saturating_sub(1);
            if completed && let Some(wanted) = &mut condition.completions {
                *wanted = wanted.saturating_sub(1);
            }
            started |= condition.notify_each
                || condition.ends == 0
                || condition.completions == Some(0)
                || condition.remaining.is_empty();
        }
        started
    }
}
