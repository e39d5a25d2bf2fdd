//! What was said to our task here and is meant for the one there.

use antiphon_core::{StatusChanged, TaskStatus, WaitingFor};

/// Something to pass on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Somebody paused it.
    Pause,
    /// Somebody let it go on.
    Resume,
}

impl Order {
    /// What a new status of our task asks for, of a task that waits for this.
    pub(crate) fn of(change: &StatusChanged, waiting_for: Option<WaitingFor>) -> Option<Self> {
        match (change.status, change.waiting_for, waiting_for) {
            (TaskStatus::InputRequired, Some(WaitingFor::Resume), _) => Some(Self::Pause),
            (TaskStatus::Running, _, Some(WaitingFor::Resume)) => Some(Self::Resume),
            (
                TaskStatus::Pending
                | TaskStatus::Running
                | TaskStatus::InputRequired
                | TaskStatus::Completed
                | TaskStatus::Failed
                | TaskStatus::Canceled,
                _,
                _,
            ) => None,
        }
    }
}
