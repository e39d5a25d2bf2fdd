//! Waiting for a task: whether it and its descendants can continue without a user or a client.

use std::time::Duration;

use antiphon_core::{TaskId, TaskStatus, TaskSummary, WaitingFor};

use crate::deps::Dispatch;
use crate::dispatch::pending_call::PendingCall;
use crate::orchestrator::Orchestrator;
use crate::orchestrator_error::OrchestratorError;
use crate::services::Services;
use crate::task::state::TaskState;

/// How often `wait` checks again whether a tree with suspended tasks is suspended as a whole. No
/// event announces that: a task that ends notifies its parent, which may wait for more tasks.
const RECHECK_AFTER: Duration = Duration::from_millis(200);

impl Orchestrator {
    /// Waits until a task has ended, or until neither it nor a descendant can continue without the
    /// user or a client. Returns an error when the task stopped early or does not run.
    pub async fn wait(&self, task_id: &TaskId) -> Result<TaskState, OrchestratorError> {
        let mut seen = None;
        loop {
            // Subscribes before it checks, so that no change is missed.
            let rested = self.services.slots.suspended.notified();
            let mut updates = self.services.notifier.subscribe(Some(task_id));
            updates.borrow_and_update();
            self.services.slots.released(task_id).await;
            let state = self.task(task_id).await?;
            if state.status.is_terminal() || state.status == TaskStatus::InputRequired {
                return Ok(state);
            }
            // Another caller may have started it meanwhile.
            if self.services.slots.find(task_id).is_some() {
                continue;
            }
            if let Some(why) = self.services.slots.stop_reason(task_id) {
                return Err(why);
            }
            if !waits_for_others(&self.services, &state) {
                // A start that was requested a moment ago may not have happened yet.
                if seen == Some(state.seq) {
                    return Err(OrchestratorError::NotRunning { task_id: task_id.clone() });
                }
                seen = Some(state.seq);
                tokio::time::sleep(RECHECK_AFTER).await;
                continue;
            }
            match tree_progress(&self.services, &state).await? {
                TreeProgress::Active { suspended } => {
                    let look_again = async {
                        if suspended {
                            tokio::time::sleep(RECHECK_AFTER).await;
                        } else {
                            std::future::pending::<()>().await;
                        }
                    };
                    tokio::select! {
                        () = rested => {}
                        () = look_again => {}
                        _ = updates.changed() => {}
                    }
                }
                TreeProgress::Suspended => return Ok(state),
                TreeProgress::Stopped(why) => return Err(why),
            }
        }
    }
}

/// Progress of a task's descendants.
pub(crate) enum TreeProgress {
    /// At least one of them runs or will run.
    Active {
        /// Others are suspended: when the last running one stops, the whole tree is suspended.
        suspended: bool,
    },
    /// All wait for a user or a client.
    Suspended,
    /// One stopped early.
    Stopped(OrchestratorError),
}

/// Whether a task that does not run will be started by another task, a peer or a client.
pub(crate) fn waits_for_others(services: &Services, state: &TaskState) -> bool {
    let client = |pending_call: &PendingCall| matches!(pending_call, PendingCall::External { .. });
    // The parent orchestrator handles requests in that case.
    let asked =
        services.deps.settings.dispatch == Dispatch::Here && !state.outbound_requests.is_empty();
    // The parent orchestrator also waits for the model.
    let outage = services.deps.settings.dispatch == Dispatch::Here
        && state.waiting_for.is_some_and(WaitingFor::is_outage);
    let waits = state.pending_calls.values().any(client) || asked || outage;
    services.waiters.waits(&state.task_id) || waits
}

/// Checks whether any descendant of a task can continue without a user or a client.
pub(crate) async fn tree_progress(
    services: &Services,
    state: &TaskState,
) -> Result<TreeProgress, OrchestratorError> {
    let root = state.created.root.as_ref().unwrap_or(&state.task_id);
    let mut below = services.reader.descendants(std::slice::from_ref(&state.task_id), root).await?;
    below.retain(|task| !task.status.is_terminal());
    let suspended = below.iter().any(|task| task.status == TaskStatus::InputRequired);
    let active = |task: &TaskSummary| {
        task.waiting_for.is_some_and(WaitingFor::is_outage)
            || services.slots.is_active(&task.task_id)
    };
    if state.waiting_for.is_some_and(WaitingFor::is_outage) || below.iter().any(active) {
        return Ok(TreeProgress::Active { suspended });
    }
    if suspended {
        return Ok(TreeProgress::Suspended);
    }
    let stopped = below.iter().find_map(|task| services.slots.stop_reason(&task.task_id));
    Ok(stopped.map_or(TreeProgress::Active { suspended }, TreeProgress::Stopped))
}
