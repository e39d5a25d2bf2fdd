//! Whether the journal takes events, and the wait until it does again.
//!
//! A full or failing disk stops no task. What a task has to record stays in memory and is appended
//! again until it is stored; nothing is run a second time for it. New work is refused meanwhile,
//! because its append fails.
//!
//! | what fails                         | what happens                                               |
//! |------------------------------------|------------------------------------------------------------|
//! | an append of a running task        | it is tried again, with a pause of at most [`PAUSE_MAX`]    |
//! | a read, or an append for a new task | the task records what it has, and starts again from the journal |
//! | an append of a caller              | the caller gets the error                                  |
//!
//! The first append that succeeds wakes every task that waits.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use antiphon_core::port::{AppendFault, Appended, Clock, JournalError};
use antiphon_core::{OutageWait, TaskId, TaskSummary, WaitingFor};
use chrono::{DateTime, Utc};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::deps::RuntimeDeps;
use crate::orchestrator_error::OrchestratorError;

/// Pause before the second attempt; it doubles with each further one.
const PAUSE_MIN: Duration = Duration::from_millis(50);

/// Longest pause between two attempts.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// What is wrong with the storage of an orchestrator, and what waits for it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StorageStatus {
    /// Why an append would fail now; `None` when it would succeed.
    pub fault: Option<AppendFault>,
    /// Appends that failed since the start.
    pub journal_errors: u64,
    /// Tasks that wait until the journal can be written.
    pub tasks_waiting: usize,
    /// Tasks that have not ended, and stopped because of an error that no retry can help.
    pub tasks_stuck: usize,
}

/// Knows whether the last append succeeded.
#[derive(Debug)]
pub(crate) struct StorageMonitor {
    /// Since when appends fail; `None` while they succeed.
    failing: watch::Sender<Option<Failing>>,
    errors: AtomicU64,
    /// Tasks that wait, with the next attempt of each.
    waiting: Mutex<HashMap<TaskId, NextAttempt>>,
    /// Whether the last check found a fault.
    is_reported: AtomicBool,
}

#[derive(Debug, Clone, Copy)]
struct Failing {
    since: Instant,
}

/// The next attempt of a task to record what it has.
#[derive(Debug, Clone)]
struct NextAttempt {
    /// Why the last one failed.
    error: String,
    failed: u32,
    at: DateTime<Utc>,
}

impl Default for StorageMonitor {
    fn default() -> Self {
        Self {
            failing: watch::Sender::new(None),
            errors: AtomicU64::new(0),
            waiting: Mutex::default(),
            is_reported: AtomicBool::new(false),
        }
    }
}

impl StorageMonitor {
    /// Notes the outcome of an append.
    pub(crate) fn note(&self, appended: &Result<Appended, JournalError>) {
        match appended {
            Ok(_) => self.works(),
            Err(JournalError::Unavailable { reason } | JournalError::Corrupt { reason, .. }) => {
                self.fails(reason);
            }
            // The journal works, and refused the append.
            Err(
                JournalError::Stale { .. }
                | JournalError::Ended { .. }
                | JournalError::Invalid { .. },
            ) => {}
        }
    }

    /// Notes that appends succeed, and wakes the tasks that wait for that.
    pub(crate) fn works(&self) {
        // Checked first: the usual append takes no lock for writing.
        if self.failing.borrow().is_none() {
            return;
        }
        let failed = self.failing.send_replace(None);
        if let Some(Failing { since, .. }) = failed {
            let seconds = since.elapsed().as_secs();
            tracing::warn!(seconds, "the journal can be written again: tasks continue");
        }
    }

    fn fails(&self, reason: &str) {
        self.errors.fetch_add(1, Ordering::Relaxed);
        self.failing.send_if_modified(|failing| {
            let began = failing.is_none();
            if began {
                tracing::warn!(
                    reason,
                    "the journal cannot be written: tasks wait, and continue when it can"
                );
                *failing = Some(Failing { since: Instant::now() });
            }
            began
        });
    }

    /// Logs what a check found, when it differs from the check before.
    pub(crate) fn report(&self, fault: Option<&AppendFault>) {
        let before = self.is_reported.swap(fault.is_some(), Ordering::Relaxed);
        if let Some(fault) = fault.filter(|_| !before) {
            tracing::warn!(%fault, "an append would fail");
        }
    }

    /// Returns when appends succeed again, or after `wait_max`: there may be no append that would show it.
    pub(crate) async fn recovered(&self, wait_max: Duration) {
        let mut failing = self.failing.subscribe();
        // Over time, or over: both end the wait.
        let _ = tokio::time::timeout(wait_max, failing.wait_for(Option::is_none)).await;
    }

    /// Returns when appends fail.
    pub(crate) async fn failed(&self) {
        // The sender lives as long as `self`.
        let _ = self.failing.subscribe().wait_for(Option::is_some).await;
    }

    pub(crate) fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }

    pub(crate) fn tasks_waiting(&self) -> usize {
        self.waiting().len()
    }

    /// Says of each of these tasks that waits for the journal why, and when it tries again.
    pub(crate) fn mark_waiting(&self, tasks: &mut [TaskSummary]) {
        let waiting = self.waiting();
        if waiting.is_empty() {
            return;
        }
        for task in tasks {
            let Some(NextAttempt { error, failed, at }) = waiting.get(&task.task_id).cloned()
            else {
                continue;
            };
            let wait = OutageWait {
                code: "storage".to_owned(),
                error,
                attempt: failed,
                next_at: at,
                superseded: false,
            };
            (task.waiting_for, task.wait) = (Some(WaitingFor::Storage), Some(wait.shortened()));
        }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<TaskId, NextAttempt>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The wait of one task for the journal. The task is listed as waiting from the first pause until this is dropped
/// or [ended](Self::end), also during an attempt.
pub(crate) struct StorageWait {
    monitor: Arc<StorageMonitor>,
    task_id: TaskId,
    clock: Arc<dyn Clock>,
    failed: u32,
    began: Instant,
    pause: Duration,
    wait_max: Option<Duration>,
}

impl StorageWait {
    pub(crate) fn begin(
        monitor: &Arc<StorageMonitor>,
        deps: &RuntimeDeps,
        task_id: &TaskId,
    ) -> Self {
        Self {
            monitor: Arc::clone(monitor),
            task_id: task_id.clone(),
            clock: Arc::clone(&deps.clock),
            failed: 0,
            began: Instant::now(),
            pause: PAUSE_MIN,
            wait_max: deps.settings.storage_wait_max,
        }
    }

    /// Waits for the next attempt. Returns false when the task has waited for as long as it may.
    /// `error` is what the last attempt found.
    pub(crate) async fn pause(&mut self, error: &str) -> bool {
        if self.wait_max.is_some_and(|max| self.began.elapsed() >= max) {
            return false;
        }
        self.failed = self.failed.saturating_add(1);
        let at = self.clock.now() + PAUSE_MIN + self.pause;
        let next = NextAttempt { error: error.to_owned(), failed: self.failed, at };
        self.monitor.waiting().insert(self.task_id.clone(), next);
        // Also when others succeed meanwhile: a longer append may fail where shorter ones succeed.
        let mut failing = self.monitor.failing.subscribe();
        let was_failing = failing.borrow().is_some();
        tokio::time::sleep(PAUSE_MIN).await;
        tokio::select! {
            () = tokio::time::sleep(self.pause) => {}
            // The monitor lives as long as `self`.
            _ = failing.wait_for(Option::is_none), if was_failing => {}
        }
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        true
    }

    /// The task does not wait until the next pause: its attempt may take long.
    pub(crate) fn end(&self) {
        self.monitor.waiting().remove(&self.task_id);
    }
}

impl Drop for StorageWait {
    fn drop(&mut self) {
        self.end();
    }
}

/// Whether the journal could not be read or written.
pub(crate) fn is_unavailable(error: &OrchestratorError) -> bool {
    matches!(error, OrchestratorError::Journal(JournalError::Unavailable { .. }))
}
