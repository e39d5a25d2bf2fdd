//! Tasks that wait on a peer: lists say for what. A user here cannot give it, so it is no wait of the task here.

use antiphon_core::{PeerWait, TaskStatus, TaskSummary};

use crate::orchestrator_error::OrchestratorError;
use crate::services::Services;

/// Tasks of one list that are looked up, at most. Further ones are `input_required` without a reason.
const LOOKED_UP_MAX: usize = 100;

/// Says of each of these tasks that waits on a peer what it waits for there.
pub(crate) async fn mark(
    services: &Services,
    tasks: &mut [TaskSummary],
) -> Result<(), OrchestratorError> {
    let held = tasks.iter_mut().filter(|task| {
        let waits = task.status == TaskStatus::InputRequired && task.waiting_for.is_none();
        waits && task.runs_on.peer.is_some()
    });
    for task in held.take(LOOKED_UP_MAX) {
        let last = services.deps.journal.last_status(&task.task_id).await?;
        task.waiting_for = last.as_ref().and_then(PeerWait::of).and_then(|wait| wait.waiting_for);
    }
    Ok(())
}
