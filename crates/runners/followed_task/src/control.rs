//! Commands to the local task that the runner forwards to the remote one.

use antiphon_core::{StatusChanged, TaskStatus, WaitingFor};

/// Code of a task that a person interrupted.
const INTERRUPTED: &str = "interrupted";

/// A command to forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlCommand {
    /// A person paused the task.
    Pause,
    /// A person interrupted its turn.
    Interrupt,
    /// It goes on.
    Resume,
}

impl ControlCommand {
    /// The command behind a new status of the local task, which waited for `waiting_for`.
    pub fn of(change: &StatusChanged, waiting_for: Option<WaitingFor>) -> Option<Self> {
        match (change.status, change.waiting_for, waiting_for) {
            (TaskStatus::InputRequired, Some(WaitingFor::Resume), _) => {
                let code = change.detail.as_ref().and_then(|detail| detail["code"].as_str());
                Some(if code == Some(INTERRUPTED) { Self::Interrupt } else { Self::Pause })
            }
            // A user resumed it here, or wants its model to be asked at once.
            (TaskStatus::Running, None, Some(WaitingFor::Resume | WaitingFor::Model)) => {
                Some(Self::Resume)
            }
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
