//! Waiting for a task: whether it and its descendants can continue without a user or a client.

use crate::deps::Dispatch;
use crate::dispatch::pending_call::PendingCall;
use crate::orchestrator_error::OrchestratorError;
use crate::services::Inner;
use crate::task::state::TaskState;

/// Progress of a task's descendants.
pub(crate) enum Rests {
    /// At least one of them runs or will run.
    No {
        /// Others are suspended: when the last running one stops, the whole tree is suspended.
        asks: bool,
    },
    /// All wait for a user or a client.
    ForSomebody,
    /// One stopped early.
    Stopped(OrchestratorError),
}

impl Inner {
    /// Whether a task that does not run will be started by another task, a peer or a client.
    pub(crate) fn waits_for_others(&self, state: &TaskState) -> bool {
        let client = |flight: &PendingCall| matches!(flight, PendingCall::External { .. });
        // The parent orchestrator handles requests in that case.
        let asked = self.world.settings.dispatch == Dispatch::Here && !state.requests.is_empty();
        let waits = state.flights.values().any(client) || asked;
        self.kin.waits(&state.task_id) || waits
    }

    /// Checks whether any descendant of a task can continue without a user or a client.
    pub(crate) async fn below_rests(&self, state: &TaskState) -> Result<Rests, OrchestratorError> {
        let root = state.created.root.as_ref().unwrap_or(&state.task_id);
        let mut below = self.below(std::slice::from_ref(&state.task_id), root).await?;
        below.retain(|task| !task.status.is_terminal());
        let asks = below.iter().any(|task| task.waiting_for.is_some());
        if below.iter().any(|task| self.places.is_taken(&task.task_id)) {
            return Ok(Rests::No { asks });
        }
        if asks {
            return Ok(Rests::ForSomebody);
        }
        let stopped = below.iter().find_map(|task| self.places.why(&task.task_id));
        Ok(stopped.map_or(Rests::No { asks }, Rests::Stopped))
    }
}
