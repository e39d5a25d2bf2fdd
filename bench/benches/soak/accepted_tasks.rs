//! Counts of operations, and the accepted tasks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Number of newest tasks that watchers choose from.
const RECENT_MAX: usize = 64;

/// Counts of operations, and the accepted tasks. Clones share their state.
#[derive(Debug, Clone, Default)]
pub(crate) struct AcceptedTasks(Arc<Mutex<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    counts: BTreeMap<&'static str, u64>,
    /// Ids of accepted tasks, which must complete.
    promised: Vec<String>,
}

impl AcceptedTasks {
    fn book(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn count(&self, what: &'static str) {
        *self.book().counts.entry(what).or_default() += 1;
    }

    pub(crate) fn promise(&self, task_id: String) {
        self.book().promised.push(task_id);
    }

    pub(crate) fn promised(&self) -> Vec<String> {
        self.book().promised.clone()
    }

    /// One of the newest tasks.
    pub(crate) fn recent(&self, number: usize) -> Option<String> {
        let book = self.book();
        let recent = &book.promised[book.promised.len().saturating_sub(RECENT_MAX)..];
        recent.get(number % recent.len().max(1)).cloned()
    }

    pub(crate) fn print(&self, took: Duration) {
        let book = self.book();
        for (what, count) in &book.counts {
            println!("{what:52}{count:>10}");
        }
        println!("{:52}{:>10.0}", "seconds", took.as_secs_f64());
    }
}
