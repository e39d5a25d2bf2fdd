//! Waiting for a task: whether it and its descendants can continue without a user or a client.

use crate::deps::Dispatch;
use crate::dispatch::pending_call::PendingCall;
use crate::orchestrator_error::OrchestratorError;
use crate::services::Services;
use crate::task::state::TaskState;

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
    let waits = state.pending_calls.values().any(client) || asked;
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
    let suspended = below.iter().any(|task| task.waiting_for.is_some());
    if below.iter().any(|task| services.slots.is_active(&task.task_id)) {
        return Ok(TreeProgress::Active { suspended });
    }
    if suspended {
        return Ok(TreeProgress::Suspended);
    }
    let stopped = below.iter().find_map(|task| services.slots.stop_reason(&task.task_id));
    Ok(stopped.map_or(TreeProgress::Active { suspended }, TreeProgress::Stopped))
}
