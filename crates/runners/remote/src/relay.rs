//! What of the events there is written down here. The table is in the documentation of the crate.

use antiphon_core::{EventBody, MessageAppended, StatusChanged, TaskId, TaskStatus};
use serde_json::json;

/// What is written down of an event of this task at this peer.
pub(crate) fn relayed(body: EventBody, peer: &str, task_id: &TaskId) -> Option<EventBody> {
    match body {
        EventBody::StatusChanged(change) => status(change, peer, task_id).map(Into::into),
        // It waited there, if it did.
        EventBody::MessageAppended(said) => Some(MessageAppended::new(said.message).into()),
        EventBody::StateChanged(_)
        | EventBody::ToolRefused(_)
        | EventBody::ToolStarted(_)
        | EventBody::UsageRecorded(_)
        | EventBody::OutputRejected(_) => Some(body),
        EventBody::TaskCreated(_)
        | EventBody::MessageQueued(_)
        | EventBody::ApprovalRequested(_)
        | EventBody::ApprovalDecided(_)
        | EventBody::ToolRequested(_)
        | EventBody::Dispatched(_)
        | EventBody::Awaited(_)
        | EventBody::RequestSent(_)
        | EventBody::Replied(_)
        | EventBody::HandedOver(_)
        | EventBody::Compacted(_)
        | EventBody::BudgetRaised(_)
        | EventBody::Relayed(_) => None,
    }
}

/// A status here. Whatever a task waits for there, nobody here can do anything about it.
fn status(change: StatusChanged, peer: &str, task_id: &TaskId) -> Option<StatusChanged> {
    match change.status {
        // Nothing becomes pending again.
        TaskStatus::Pending => None,
        TaskStatus::Running | TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Canceled => {
            Some(StatusChanged { waiting_for: None, ..change })
        }
        TaskStatus::InputRequired => {
            let (status, waiting_for) = (change.status, change.waiting_for);
            let place = json!({ "peer": peer, "task_id": task_id, "waiting_for": waiting_for });
            Some(StatusChanged { detail: Some(place), ..StatusChanged::new(status) })
        }
    }
}

/// Whether an event belongs to how the task began there: its creation, and the messages that came
/// with it. The first event of any other kind is the first of its work.
pub(crate) fn is_beginning(body: &EventBody) -> bool {
    match body {
        EventBody::TaskCreated(_) => true,
        EventBody::MessageAppended(appended) => appended.queued.is_none(),
        EventBody::StatusChanged(_)
        | EventBody::StateChanged(_)
        | EventBody::MessageQueued(_)
        | EventBody::ApprovalRequested(_)
        | EventBody::ApprovalDecided(_)
        | EventBody::ToolRefused(_)
        | EventBody::ToolStarted(_)
        | EventBody::ToolRequested(_)
        | EventBody::Dispatched(_)
        | EventBody::Awaited(_)
        | EventBody::RequestSent(_)
        | EventBody::Replied(_)
        | EventBody::HandedOver(_)
        | EventBody::BudgetRaised(_)
        | EventBody::Relayed(_)
        | EventBody::UsageRecorded(_)
        | EventBody::OutputRejected(_)
        | EventBody::Compacted(_) => false,
    }
}
