//! What was done, and what was promised.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Tasks that a watcher may choose from: the newest.
const RECENT_MAX: usize = 64;

/// What was done, and what was promised. Clones are the same one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger(Arc<Mutex<Book>>);

#[derive(Debug, Default)]
struct Book {
    counts: BTreeMap<&'static str, u64>,
    /// Tasks that were accepted and have to be done.
    promised: Vec<String>,
}

impl Ledger {
    fn book(&self) -> MutexGuard<'_, Book> {
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
