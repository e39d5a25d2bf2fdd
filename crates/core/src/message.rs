//! Messages: what a model reads and writes.
//!
//! A closed set of three, each holding only the blocks its role may have:
//!
//! | message       | blocks                       | written by           |
//! |---------------|------------------------------|----------------------|
//! | `user`        | `text`, `image`              | a person, or a peer  |
//! | `assistant`   | `text`, `thinking`, `tool_call` | the model         |
//! | `tool_result` | `text`, `image`              | a tool               |
//!
//! A wrong pair cannot be built. JSON from outside is read into these types or refused with a
//! [`MessageError`] that names the field; that is the only way in, so nothing is checked twice.
//! The JSON is that of session file v1, used unchanged in events and in the API.

mod block;
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
    /// Something the model is asked or told.
    User(UserMessage),
    /// What the model answered.
    Assistant(AssistantMessage),
    /// What came of one of its calls.
    ToolResult(ToolResultMessage),
}

/// Something the model is asked or told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "wire::UserWire", into = "wire::UserWire")]
pub struct UserMessage {
    /// Text and images, in order.
    pub content: Vec<InputBlock>,
    /// When it was written.
    pub timestamp: DateTime<Utc>,
}

/// What the model answered.
#[derive(Debug, Clone, PartialEq)]
pub struct AssistantMessage {
    /// Text, thinking and calls, in the order the model began them.
    pub content: Vec<AssistantBlock>,
    /// Why it stopped.
    pub stop_reason: StopReason,
    /// The provider's own word for it, kept as it came.
    pub raw_stop_reason: String,
    /// What the answer cost.
    pub usage: Usage,
    /// Which model wrote it. Signatures and thinking go back to this model only.
    pub model: Option<ModelRef>,
    /// When the answer began.
    pub timestamp: DateTime<Utc>,
}

/// What came of one tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResultMessage {
    /// Which call.
    pub tool_call_id: ToolCallId,
    /// Which tool.
    pub tool_name: String,
    /// What the model gets to see.
    pub content: Vec<InputBlock>,
    /// The tool ran and failed, or could not finish.
    pub is_error: bool,
    /// When the result was known.
    pub timestamp: DateTime<Utc>,
}

impl Message {
    /// When it was written.
    pub fn timestamp(&self) -> DateTime<Utc> {
        match self {
            Self::User(message) => message.timestamp,
            Self::Assistant(message) => message.timestamp,
            Self::ToolResult(message) => message.timestamp,
        }
    }
}

impl UserMessage {
    /// A message of one text.
    pub fn text(text: impl Into<String>, timestamp: DateTime<Utc>) -> Self {
        Self { content: vec![InputBlock::text(text)], timestamp }
    }
}

impl AssistantMessage {
    /// The calls in it, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCallBlock> {
        self.content.iter().filter_map(|block| match block {
            AssistantBlock::ToolCall(call) => Some(call),
            AssistantBlock::Text(_) | AssistantBlock::Thinking(_) | AssistantBlock::Opaque(_) => {
                None
            }
        })
    }

    /// All its text, joined.
    pub fn text(&self) -> String {
        self.content.iter().filter_map(AssistantBlock::as_text).collect()
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
