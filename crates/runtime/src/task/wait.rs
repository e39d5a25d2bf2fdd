//! Whether a tree of tasks can go on without somebody.

use crate::deps::Dispatch;
use crate::dispatch::pending_call::PendingCall;
use crate::orchestrator_error::OrchestratorError;
use crate::services::Inner;
use crate::task::state::TaskState;

/// What keeps everything below a task.
pub(crate) enum Rests {
    /// Somebody is at work, or will be.
    No {
        /// Others wait for somebody: when the last of those at work is done, everything rests.
        asks: bool,
    },
    /// Somebody has to do something.
    ForSomebody,
    /// It stopped before its end.
    Stopped(OrchestratorError),
}

impl Inner {
    /// Whether a task that nobody works on will be taken up when somebody else is done.
    pub(crate) fn waits_for_others(&self, state: &TaskState) -> bool {
        let client = |flight: &PendingCall| matches!(flight, PendingCall::External { .. });
        // What is left to the one above, nobody here waits for.
        let asked = self.world.settings.dispatch == Dispatch::Here && !state.requests.is_empty();
        let waits = state.flights.values().any(client) || asked;
        self.kin.waits(&state.task_id) || waits
    }

    /// Whether nothing below a task, nor the task itself, can go on without somebody.
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
