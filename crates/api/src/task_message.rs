//! Messages to a task, and results of tools that the client runs.

use antiphon_core::{HandlingMode, InteractionId, SourceName, ToolCallId};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

/// A message to a task.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(example = serde_json::json!({ "text": "Look at the tests, too.", "mode": "steer" }))
)]
pub struct SendMessage {
    /// The message: a text, or a user message with text and images.
    #[cfg_attr(feature = "schema", schemars(with = "antiphon_core::schema::MessageOrText"))]
    pub text: Box<RawValue>,
    /// When the model reads it: `queue` (with the next turn) or `steer` (after the current step).
    #[serde(default)]
    pub mode: HandlingMode,
    /// Source that the message comes from, such as a program. Absent: it is the word of the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<SourceName>,
}

impl SendMessage {
    /// A message that is a text.
    pub fn text(text: &str, mode: HandlingMode) -> Result<Self, serde_json::Error> {
        Ok(Self { text: to_raw_value(text)?, mode, from: None })
    }
}

/// A message that is durable in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MessageAccepted {
    /// Id of the message.
    pub interaction_id: InteractionId,
}

/// The result of a call of a tool that the client runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(example = serde_json::json!({ "tool_call_id": "c1", "content": "sun" }))
)]
pub struct SendToolResult {
    /// Id of the call, from the event `tool_requested`.
    pub tool_call_id: ToolCallId,
    /// What the model reads: a text, or a list of blocks.
    #[cfg_attr(feature = "schema", schemars(with = "antiphon_core::schema::BlocksOrText"))]
    pub content: Box<RawValue>,
    /// `true` when the tool ran and failed.
    #[serde(default)]
    pub is_error: bool,
}
