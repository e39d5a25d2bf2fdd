//! The approval that a task waits for.

use antiphon_core::{Approval, TaskId};
use antiphon_runtime::{ApprovalRequests, Orchestrator, OrchestratorError};

/// The oldest approval that a task or a descendant waits for, as soon as there is one. `requests` are those from
/// before the task began; `None` for a task that existed before. An approval on a peer is decided there.
pub async fn needed_approval(
    orchestrator: &Orchestrator,
    task_id: &TaskId,
    requests: Option<ApprovalRequests>,
) -> Result<Approval, OrchestratorError> {
    match requests {
        Some(requests) => orchestrator.new_approval_needed(task_id, requests).await,
        None => orchestrator.approval_needed(task_id).await,
    }
}
