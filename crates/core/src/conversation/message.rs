//! Messages: what a model reads and writes.
//!
//! A closed set of three, each holding only the blocks its role may have:
//!
//! | message       | blocks                       | written by           |
//! |---------------|------------------------------|----------------------|
//! | `user`        | `text`, `image`              | a user or another agent |
//! | `assistant`   | `text`, `thinking`, `tool_call` | the model         |
//! | `tool_result` | `text`, `image`              | a tool               |
//!
//! A wrong combination cannot be built. JSON from outside is parsed into these types or refused with a
//! [`MessageError`] that names the field; there is no second check.
//! The JSON is that of session file v1, used unchanged in events and in the API.

mod block;
mod input;
mod wire;

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

pub use block::{
    AssistantBlock, IMAGE_BYTES_MAX, ImageBlock, InputBlock, OpaqueBlock, Signature, TextBlock,
    ThinkingBlock, ToolArguments, ToolCallBlock,
};
pub use wire::MessageError;
pub(crate) use wire::{BlockWire, input_blocks};

use crate::{ModelRef, StopReason, ToolCallId, Usage};

/// One entry of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "wire::MessageWire", into = "wire::MessageWire")]
pub enum Message {
    /// Input of the model.
    User(UserMessage),
    /// Answer of the model.
    Assistant(AssistantMessage),
    /// Result of a tool call.
    ToolResult(ToolResultMessage),
}

/// Input of the model: the text of a user, another agent or an event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "wire::UserWire", into = "wire::UserWire")]
pub struct UserMessage {
    /// Text and images, in order.
    pub content: Vec<InputBlock>,
    /// Time of writing.
    pub timestamp: DateTime<Utc>,
}

/// Answer of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct AssistantMessage {
    /// Text, thinking and tool calls, in the order the model began them.
    pub content: Vec<AssistantBlock>,
    /// Why the model stopped.
    pub stop_reason: StopReason,
    /// The provider's own word for it, unchanged.
    pub raw_stop_reason: String,
    /// Tokens used.
    pub usage: Usage,
    /// Model that wrote it. Signatures and thinking go back to this model only.
    pub model: Option<ModelRef>,
    /// Time when the answer began.
    pub timestamp: DateTime<Utc>,
}

/// Result of one tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResultMessage {
    /// Id of the tool call.
    pub tool_call_id: ToolCallId,
    /// Name of the tool.
    pub tool_name: String,
    /// Content that the model reads.
    pub content: Vec<InputBlock>,
    /// Whether the tool failed or could not finish.
    pub is_error: bool,
    /// Time of the result.
    pub timestamp: DateTime<Utc>,
}

impl Message {
    /// Time of writing.
    pub fn timestamp(&self) -> DateTime<Utc> {
        match self {
            Self::User(message) => message.timestamp,
            Self::Assistant(message) => message.timestamp,
            Self::ToolResult(message) => message.timestamp,
        }
    }
}

impl UserMessage {
    /// A message with one text.
    pub fn text(text: impl Into<String>, timestamp: DateTime<Utc>) -> Self {
        Self { content: vec![InputBlock::text(text)], timestamp }
    }
}

impl AssistantMessage {
    /// The tool calls, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCallBlock> {
        self.content.iter().filter_map(|block| match block {
            AssistantBlock::ToolCall(call) => Some(call),
            AssistantBlock::Text(_) | AssistantBlock::Thinking(_) | AssistantBlock::Opaque(_) => {
                None
            }
        })
    }

    /// All text, joined.
    pub fn text(&self) -> String {
        self.content.iter().filter_map(AssistantBlock::as_text).collect()
    }

    /// Whether the answer is neither broken off nor interrupted.
    pub fn is_complete(&self) -> bool {
        !matches!(self.stop_reason, StopReason::Error | StopReason::Aborted)
    }
}

impl From<UserMessage> for Message {
    fn from(message: UserMessage) -> Self {
        Self::User(message)
    }
}

impl From<AssistantMessage> for Message {
    fn from(message: AssistantMessage) -> Self {
        Self::Assistant(message)
    }
}

impl From<ToolResultMessage> for Message {
    fn from(message: ToolResultMessage) -> Self {
        Self::ToolResult(message)
    }
}

macro_rules! shared {
    ($($kind:ident)*) => { $(
        impl From<$kind> for Arc<Message> {
            fn from(message: $kind) -> Self {
                Self::new(message.into())
            }
        }
    )* };
}
shared!(UserMessage AssistantMessage ToolResultMessage);
