//! Properties of events, each decided in one place.

use super::{EventBody, MessageQueued, StatusChanged};
use crate::{InteractionId, ToolCallId};

impl EventBody {
    /// Whether the loop of a task writes the event, here or in a runner. Users and the orchestrator
    /// write the others.
    pub fn is_written_by_loop(&self) -> bool {
        match self {
            Self::StatusChanged(_)
            | Self::StateChanged(_)
            | Self::MessageAppended(_)
            | Self::ApprovalRequested(_)
            | Self::ToolRefused(_)
            | Self::ToolStarted(_)
            | Self::UsageRecorded(_)
            | Self::OutputRejected(_)
            | Self::TodoChanged(_)
            | Self::Compacted(_) => true,
            Self::TaskCreated(_)
            | Self::MessageQueued(_)
            | Self::ApprovalDecided(_)
            | Self::ToolRequested(_)
            | Self::Dispatched(_)
            | Self::Awaited(_)
            | Self::HandedOver(_)
            | Self::TaskRestored(_)
            | Self::RequestSent(_)
            | Self::Replied(_)
            | Self::BudgetRaised(_)
            | Self::Relayed(_) => false,
        }
    }

    /// Whether the event only records an arrival. Arrivals do not conflict with the task's writer,
    /// see [`Expected::AtOrArrivals`](crate::port::Expected::AtOrArrivals).
    pub fn is_arrival(&self) -> bool {
        matches!(self, Self::MessageQueued(_))
    }

    /// Whether the event is the last of its task.
    pub fn ends_task(&self) -> bool {
        matches!(self, Self::StatusChanged(StatusChanged { status, .. }) if status.is_terminal())
    }

    /// Id of the message that leaves the inbox of the task with this event: a newer message
    /// replaces it, it joins the conversation, or the task answers it. The end of a task empties
    /// its inbox, see [`ends_task`](Self::ends_task).
    pub fn leaves_inbox(&self) -> Option<InteractionId> {
        match self {
            Self::MessageQueued(MessageQueued { replaces, .. }) => *replaces,
            Self::MessageAppended(appended) => appended.queued,
            Self::Replied(replied) => Some(replied.in_reply_to),
            Self::TaskCreated(_)
            | Self::StatusChanged(_)
            | Self::StateChanged(_)
            | Self::RequestSent(_)
            | Self::ApprovalRequested(_)
            | Self::ApprovalDecided(_)
            | Self::ToolRefused(_)
            | Self::ToolStarted(_)
            | Self::ToolRequested(_)
            | Self::Dispatched(_)
            | Self::Awaited(_)
            | Self::HandedOver(_)
            | Self::TaskRestored(_)
            | Self::Relayed(_)
            | Self::UsageRecorded(_)
            | Self::BudgetRaised(_)
            | Self::OutputRejected(_)
            | Self::TodoChanged(_)
            | Self::Compacted(_) => None,
        }
    }

    /// Id of the tool call that the event starts or refuses.
    pub fn starts_call(&self) -> Option<&ToolCallId> {
        match self {
            Self::ToolStarted(event) => Some(&event.tool_call_id),
            Self::ToolRefused(event) => Some(&event.tool_call_id),
            Self::ToolRequested(event) => Some(&event.tool_call_id),
            Self::Dispatched(event) => Some(&event.tool_call_id),
            Self::Awaited(event) => Some(&event.tool_call_id),
            Self::HandedOver(event) => Some(&event.tool_call_id),
            Self::RequestSent(event) => Some(&event.tool_call_id),
            Self::TaskCreated(_)
            | Self::TaskRestored(_)
            | Self::StatusChanged(_)
            | Self::StateChanged(_)
            | Self::MessageAppended(_)
            | Self::MessageQueued(_)
            | Self::Replied(_)
            | Self::ApprovalRequested(_)
            | Self::ApprovalDecided(_)
            | Self::Relayed(_)
            | Self::UsageRecorded(_)
            | Self::BudgetRaised(_)
            | Self::OutputRejected(_)
            | Self::TodoChanged(_)
            | Self::Compacted(_) => None,
        }
    }
}
