//! Starts tasks and supervises their runs. A task that stops for a passing reason (panic, no
//! heartbeat) is restarted a few times, each time after a longer pause. While the journal is
//! unavailable it is restarted for as long as it may wait for that.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use antiphon_core::TaskId;
use antiphon_core::port::JournalError;
use futures_util::FutureExt;

use crate::orchestrator_error::OrchestratorError;
use crate::services::Services;
use crate::storage::{StorageWait, is_unavailable};
use crate::task::schedule::run_slots::RunningTask;
use crate::task::step::{self, RunEnd};

/// Starts a task, or makes a running task check for new events.
pub(crate) fn start(services: &Arc<Services>, task_id: &TaskId) {
    if services.background.starts_nothing() {
        return;
    }
    let Some(running) = services.slots.acquire(task_id) else { return };
    spawn(services, task_id, running);
}

/// Starts a new task while its creation is being written. Its first model request may leave; everything else waits for
/// [`EarlyStart::recorded`]. Returns `None` when the task has to start afterwards.
pub(crate) fn start_early(services: &Arc<Services>, task_id: &TaskId) -> Option<EarlyStart> {
    if services.background.starts_nothing() {
        return None;
    }
    let running = services.slots.acquire_early(task_id)?;
    spawn(services, task_id, Arc::clone(&running));
    Some(EarlyStart(running))
}

/// The run of a task that the journal may not have yet. Dropping it ends the run and its model call: the task does not exist.
pub(crate) struct EarlyStart(Arc<RunningTask>);

impl EarlyStart {
    /// The journal has the task.
    pub(crate) fn recorded(self) {
        self.0.set_recorded(true);
    }
}

impl Drop for EarlyStart {
    fn drop(&mut self) {
        if !self.0.is_recorded() {
            self.0.set_recorded(false);
        }
    }
}

fn spawn(services: &Arc<Services>, task_id: &TaskId, running: Arc<RunningTask>) {
    let (services, task_id) = (Arc::clone(services), task_id.clone());
    let tracker = services.background.tracker.clone();
    tracker.spawn(async move {
        let slot = SlotGuard { services: Arc::clone(&services), task_id: task_id.clone(), running };
        tokio::select! {
            () = supervise(&services, &task_id, &slot.running) => {}
            () = services.background.kill.cancelled() => {}
            () = slot.running.creation_failed() => {}
        }
    });
}

/// A slot that is given up however the run ends.
struct SlotGuard {
    services: Arc<Services>,
    task_id: TaskId,
    running: Arc<RunningTask>,
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        let next = self.services.slots.release(&self.task_id, &self.running);
        if let Some(next) = next {
            start(&self.services, &next);
        }
    }
}

/// Runs a task until it has ended or is suspended, with restarts.
async fn supervise(services: &Arc<Services>, task_id: &TaskId, running: &Arc<RunningTask>) {
    let settings = services.deps.settings;
    let mut pause = settings.restart_after;
    let mut restarts = 0;
    let mut storage_wait: Option<StorageWait> = None;
    loop {
        running.heartbeat();
        let run = step::run(Arc::clone(services), task_id, Arc::clone(running));
        let stopped = tokio::select! {
            ended = AssertUnwindSafe(run).catch_unwind() => match ended {
                Ok(Ok(end)) => {
                    running.recorded().await;
                    running.suspended.store(end == RunEnd::Suspended, Ordering::Relaxed);
                    if end == RunEnd::Ended || services.background.stop.is_cancelled() {
                        services.release_tools(task_id).await;
                    }
                    if services.slots.release_if_done(task_id) {
                        return;
                    }
                    continue;
                }
                Ok(Err(error)) => error,
                Err(_) => OrchestratorError::Panicked { task_id: task_id.clone() },
            },
            () = running.heartbeat_missing(settings.heartbeat_timeout) => {
                OrchestratorError::Unresponsive { task_id: task_id.clone() }
            }
        };
        running.recorded().await;
        // Decisions may not have been recorded: they are made again from the journal.
        services.waiters.remove(task_id);
        services.sent_requests.forget(task_id);
        services.request_waits.forget(task_id);
        if is_unavailable(&stopped) && !services.background.stop.is_cancelled() {
            let begin = || StorageWait::begin(&services.storage, &services.deps, task_id);
            let wait = storage_wait.get_or_insert_with(begin);
            let why = stopped.to_string();
            let waited = tokio::select! {
                waited = wait.pause(&why) => waited,
                () = services.background.stop.cancelled() => false,
            };
            wait.end();
            if waited {
                continue;
            }
        } else {
            storage_wait = None;
        }
        if restarts == settings.restarts_max
            || !is_temporary(&stopped)
            || services.background.stop.is_cancelled()
        {
            // `wait` reports the reason; the task can be resumed.
            tracing::error!(task.id = %task_id, error = %stopped, "a task stopped early");
            let _ = running.stop_reason.set(stopped);
            services.release_tools(task_id).await;
            return;
        }
        tracing::warn!(task.id = %task_id, error = %stopped, "a task is restarted");
        restarts += 1;
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = services.background.stop.cancelled() => {}
        }
        pause *= 2;
    }
}

/// Whether a restart may help.
fn is_temporary(error: &OrchestratorError) -> bool {
    matches!(
        error,
        OrchestratorError::Journal(JournalError::Unavailable { .. })
            | OrchestratorError::Panicked { .. }
            | OrchestratorError::Unresponsive { .. }
    )
}
