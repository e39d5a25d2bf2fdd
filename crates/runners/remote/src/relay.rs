//! Which remote events the local journal gets. The table is in the documentation of the crate.

use antiphon_core::{
    EventBody, MessageAppended, PeerWait, StatusChanged, TaskId, TaskStatus, WaitingFor,
};

/// The local event for a remote event of this task at this peer, if there is one.
pub(crate) fn local_event(body: EventBody, peer: &str, task_id: &TaskId) -> Option<EventBody> {
    match body {
        EventBody::StatusChanged(change) => status(change, peer, task_id).map(Into::into),
        // An id of the peer's queue means nothing here.
        EventBody::MessageAppended(remote) => {
            Some(MessageAppended { queued: None, ..remote }.into())
        }
        EventBody::StateChanged(_)
        | EventBody::ToolRefused(_)
        | EventBody::ToolStarted(_)
        | EventBody::UsageRecorded(_)
        | EventBody::OutputRejected(_)
        | EventBody::TodoChanged(_) => Some(body),
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
        | EventBody::TaskRestored(_)
        | EventBody::Compacted(_)
        | EventBody::BudgetRaised(_)
        | EventBody::Relayed(_) => None,
    }
}

/// The local status. A user here cannot give what a remote task waits for.
fn status(change: StatusChanged, peer: &str, task_id: &TaskId) -> Option<StatusChanged> {
    match change.status {
        // No task becomes pending again.
        TaskStatus::Pending => None,
        TaskStatus::Running | TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Canceled => {
            let waiting_for = change.waiting_for.filter(|what| *what == WaitingFor::Model);
            Some(StatusChanged { waiting_for, ..change })
        }
        TaskStatus::InputRequired => {
            let (peer, task_id) = (peer.to_owned(), task_id.clone());
            Some(PeerWait { peer, task_id, waiting_for: change.waiting_for, reason: None }.status())
        }
    }
}

/// Whether the event is the wait for a resume.
pub(crate) fn waits_for_resume(body: &EventBody) -> bool {
    matches!(
        body,
        EventBody::StatusChanged(StatusChanged {
            status: TaskStatus::InputRequired,
            waiting_for: Some(WaitingFor::Resume),
            ..
        })
    )
}

/// Whether an event belongs to the creation of the remote task: its first event, and the messages that it
/// was created with. The first event of any other kind is the first of its work.
pub(crate) fn is_creation(body: &EventBody) -> bool {
    if let EventBody::MessageAppended(appended) = body {
        return appended.queued.is_none();
    }
    matches!(body, EventBody::TaskCreated(_))
}
