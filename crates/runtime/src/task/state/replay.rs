//! Rebuilds the state of a task from its events.

use antiphon_core::{Event, EventBody, Seq, TaskId};

use crate::task::state::TaskState;
use crate::task::state::conversation::Conversation;

/// Why a task cannot be rebuilt from the journal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// The journal has no such task.
    #[error("there is no task {task_id}")]
    NoTask {
        /// Id that was looked up.
        task_id: TaskId,
    },
    /// An event cannot follow the one before it.
    #[error("the journal of task {task_id} is inconsistent at event {seq}")]
    OutOfOrder {
        /// Id of the task.
        task_id: TaskId,
        /// Sequence number of the event.
        seq: Seq,
    },
}

impl TaskState {
    /// Rebuilds a task from its events, in order; `before` is the conversation it continues.
    pub fn replay(
        task_id: &TaskId,
        before: Conversation,
        events: &[Event],
    ) -> Result<Self, ReplayError> {
        let out_of_order = |seq| ReplayError::OutOfOrder { task_id: task_id.clone(), seq };
        let (first, rest) =
            events.split_first().ok_or_else(|| ReplayError::NoTask { task_id: task_id.clone() })?;
        let EventBody::TaskCreated(created) = &first.body else {
            return Err(out_of_order(first.seq));
        };
        let mut state = Self::created(task_id.clone(), created.clone(), first.at, before);
        for event in rest {
            if !state.follow(event) {
                return Err(out_of_order(event.seq));
            }
        }
        state.position = state.position.max(first.position);
        Ok(state)
    }

    /// Applies an event that was read. Returns false when it cannot follow.
    pub(crate) fn follow(&mut self, event: &Event) -> bool {
        if event.seq.0 != self.seq.0 + 1 || !self.apply(&event.body) {
            return false;
        }
        self.position = event.position;
        true
    }
}
