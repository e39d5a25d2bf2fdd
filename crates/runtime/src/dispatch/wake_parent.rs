//! Wakes the tasks that wait for a task when it ends: a parent for its children, and any task for the
//! tasks it awaits.

use std::sync::Arc;

use antiphon_core::{EventBody, TaskId, TaskStatus, TaskSummary};
use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::deps::Dispatch;
use crate::dispatch::pending_call::TaskOutcome;
use crate::orchestrator_error::OrchestratorError;
use crate::services::Services;
use crate::task::schedule::deadlines;
use crate::task::schedule::supervise;
use crate::task::state::TaskState;

/// Starts the tasks that wait for an ended task. Each is woken once.
pub(crate) fn task_ended(services: &Arc<Services>, task_id: &TaskId, outcome: &TaskOutcome) {
    for waiter in services.waiters.ended(task_id, outcome) {
        supervise::start(services, &waiter);
    }
    services.waiters.remove(task_id);
}

/// The same for a task that was found ended: the process that recorded the end may have ended before
/// it woke the waiters.
pub(crate) fn found_ended(services: &Arc<Services>, state: &TaskState) {
    let now = services.deps.clock.now();
    task_ended(
        services,
        &state.task_id,
        &TaskOutcome::of_status(state.status, state.detail.as_ref(), now),
    );
}

/// Starts the parent of a task that runs, unless it runs or waits for the task here: this process may have started the
/// task alone, for a decision, a message or a resume, and its parent has to learn of the end. A running task has a
/// parent that has not ended. One that stopped early for an error is left alone: it would start its children again, and
/// they it.
pub(crate) fn start_parent(services: &Arc<Services>, state: &TaskState) {
    let Some(parent) = &state.created.parent else { return };
    if services.deps.settings.dispatch == Dispatch::Here
        && !services.slots.is_active(parent)
        && services.slots.stop_reason(parent).is_none()
        && !services.waiters.not_registered(parent, std::slice::from_ref(&state.task_id)).is_empty()
    {
        supervise::start(services, parent);
    }
}

/// Records for `waiter` how a task ended, or starts that task.
pub(crate) async fn rejoin(
    services: &Arc<Services>,
    waiter: &TaskId,
    task: &TaskSummary,
) -> Result<(), OrchestratorError> {
    if task.status.is_terminal() {
        let outcome = services.reader.outcome(task).await?;
        services.waiters.record_outcome(waiter, &task.task_id, outcome);
    } else if task.waiting_for.is_some_and(|what| !what.continues_by_itself()) {
        deadlines::watch_wall_clock(services, &task.task_id).await?;
    } else {
        supervise::start(services, &task.task_id);
    }
    Ok(())
}

impl TaskOutcome {
    /// The outcome of the task, if the event ends it.
    pub(crate) fn of_event(body: &EventBody, at: DateTime<Utc>) -> Option<Self> {
        let EventBody::StatusChanged(change) = body else { return None };
        let terminal = change.status.is_terminal();
        terminal.then(|| Self::of_status(change.status, change.detail.as_ref(), at))
    }

    pub(crate) fn of_status(
        status: TaskStatus,
        detail: Option<&Value>,
        ended_at: DateTime<Utc>,
    ) -> Self {
        let content = detail.cloned().unwrap_or_else(|| Value::String(status.as_str().to_owned()));
        Self { status, content, ended_at }
    }
}
