//! The wait of a task on a peer: the detail of `status_changed` when the task there is `input_required`.

use serde::{Deserialize, Serialize};

use super::{StatusChanged, WaitingFor};
use crate::{TaskId, TaskStatus};

/// What a task on a peer waits for there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerWait {
    /// Name of the peer.
    pub peer: String,
    /// Id of the task there.
    pub task_id: TaskId,
    /// What it waits for there. `None` when the peer does not say.
    pub waiting_for: Option<WaitingFor>,
    /// What it asks, and how it is answered. Absent: only a person at the peer can answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl PeerWait {
    /// The wait that a status begins, if it does.
    pub fn of(change: &StatusChanged) -> Option<Self> {
        let held = change.status == TaskStatus::InputRequired && change.waiting_for.is_none();
        let detail = change.detail.as_ref().filter(|_| held)?;
        Self::deserialize(detail).ok()
    }

    /// The status that begins the wait.
    pub fn status(&self) -> StatusChanged {
        let detail = serde_json::to_value(self).ok();
        StatusChanged { detail, ..StatusChanged::new(TaskStatus::InputRequired) }
    }
}
