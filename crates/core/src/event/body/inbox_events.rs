//! Arrivals in the inbox of a task, and requests between agents.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::defaults::{
    content, is_false, is_message, is_user, is_zero, message_class, user,
};
use crate::port::BootTime;
use crate::{
    AgentName, HandlingMode, InteractionContent, InteractionId, PeerInputClass, Provenance,
    RawJson, RenderMetadata, ResponseStatus, Sender, TaskId, ToolCallId,
};

event_structs! {
    /// An interaction arrived and waits in the inbox of the task.
    MessageQueued {
        /// Id of the interaction.
        id: InteractionId,
        /// When it may join the conversation.
        mode: HandlingMode,
        /// Sender. Absent: the user.
        #[serde(default = "user", skip_serializing_if = "is_user")]
        from: Sender,
        /// Content, as it arrived.
        #[serde(alias = "message", deserialize_with = "content")]
        content: InteractionContent,
        /// Class, decided on arrival. Absent: `actionable_message`.
        #[serde(default = "message_class", skip_serializing_if = "is_message")]
        class: PeerInputClass,
        /// How to show it and how urgent it is. Absent: the defaults of its class.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        render_metadata: Option<RenderMetadata>,
        /// Whether it waits until the agent works for another reason. Absent: `false`.
        #[serde(default, skip_serializing_if = "is_false")]
        quiet: bool,
        /// Id of the task that waits for the answer. Absent: no task waits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reply_to: Option<TaskId>,
        /// Time after which an answer is too late. Absent: never.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<DateTime<Utc>>,
        /// The same moment by a clock that cannot be set. Absent: unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        boot_until: Option<BootTime>,
        /// Id of an older queued message that this one replaces. Absent: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        replaces: Option<InteractionId>,
        /// Number of messages between agents in the chain that led to this one; 0 when it comes
        /// from outside. Absent: 0.
        #[serde(default, skip_serializing_if = "is_zero")]
        hops: u32,
        /// JSON that came with an external event, for programs; the model does not see it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        payload: Option<RawJson>,
        /// Where it came from, stamped when it was accepted. Absent: unknown.
        #[serde(default, skip_serializing_if = "Provenance::is_unknown")]
        provenance: Provenance,
    }
    /// A tool call sends a request to another agent. The orchestrator delivers it under this id
    /// after this event.
    RequestSent {
        /// Id of the tool call.
        tool_call_id: ToolCallId,
        /// Id of the request.
        id: InteractionId,
        /// Name of the receiver.
        to: AgentName,
        /// Intent of the request.
        intent: String,
        /// Parameters of the request. Absent: `null`.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        params: Value,
        /// Time after which the request counts as failed.
        until: DateTime<Utc>,
        /// The same moment by a clock that cannot be set. Absent: unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        boot_until: Option<BootTime>,
        /// Whether the tool call waits for the answer. Absent: `false`.
        #[serde(default, skip_serializing_if = "is_false")]
        waits: bool,
    }
    /// The task answers a request. The orchestrator delivers the answer after this event.
    Replied {
        /// Id of the request.
        in_reply_to: InteractionId,
        /// Sender of the request.
        to: Sender,
        /// Id of the task that waits for the answer. Absent: no task waits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reply_to: Option<TaskId>,
        /// `accepted` for a promise, `completed` or `failed` for the final answer.
        status: ResponseStatus,
        /// The answer. Absent: `null`.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        result: Value,
    }
}
