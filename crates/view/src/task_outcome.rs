//! What a task came to when it is no longer at work: the classes that a front end tells a person.

use antiphon_core::{TaskStatus, WaitingFor};
use antiphon_runtime::TaskState;

use crate::{FailedTask, FailureKind, FailureReader, failure_text};

/// What a task came to, or what it waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskOutcome {
    /// It has a result.
    Completed,
    /// A person canceled it.
    Canceled,
    /// A person has to answer a question or decide about a call.
    WaitsForApproval,
    /// A person has interrupted it, and can resume it.
    Interrupted,
    /// A person has paused it, and can resume it.
    Paused,
    /// Its budget is used up. The text says which.
    WaitsForBudget(String),
    /// Its client has to send the result of a call.
    WaitsForClient,
    /// It goes on by itself when its model, its peer or the disk is back, or when a process runs it.
    Suspended,
    /// It failed. The text says why, and what to do.
    Failed(FailureKind, String),
}

impl TaskOutcome {
    /// The outcome of a task. Text of a provider may be in it: the caller escapes it.
    pub fn of(state: &TaskState, reader: FailureReader) -> Self {
        let detail = state.detail.as_ref();
        let text = |field: &str| detail.and_then(|it| it[field].as_str()).unwrap_or_default();
        match (state.status, state.waiting_for) {
            (TaskStatus::Completed, _) => Self::Completed,
            (TaskStatus::Canceled, _) => Self::Canceled,
            (TaskStatus::Failed, _) => {
                let failed = FailedTask::of(detail, &state.created);
                Self::Failed(failed.kind(), failure_text(&failed, reader))
            }
            (TaskStatus::InputRequired, Some(WaitingFor::Approval)) => Self::WaitsForApproval,
            (TaskStatus::InputRequired, Some(WaitingFor::Resume)) => match text("code") {
                "interrupted" => Self::Interrupted,
                _ => Self::Paused,
            },
            (TaskStatus::InputRequired, Some(WaitingFor::Budget)) => {
                Self::WaitsForBudget(text("error").to_owned())
            }
            (TaskStatus::InputRequired, Some(WaitingFor::ToolResult)) => Self::WaitsForClient,
            (
                TaskStatus::InputRequired,
                Some(WaitingFor::Model | WaitingFor::Peer | WaitingFor::Storage) | None,
            )
            | (TaskStatus::Pending | TaskStatus::Running, _) => Self::Suspended,
        }
    }
}
