//! JSON Schemas of types with a hand-written JSON form; those of all other types are derived.
//! A schema is never stricter than the parser. Rules that only the parser knows, such as the order of
//! blocks in a message, are left to the parser, which refuses violations.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};

use crate::{
    AgentName, ApprovalId, InputBlock, MODEL_REF_BYTES_MAX, Message, ModelRef, NAME_BYTES_MAX,
    RawJson, Sender, SessionId, SourceName, StopReason, TEXT_ID_BYTES_MAX, TaskId, ToolCallId,
    Usage, UserMessage,
};

macro_rules! by_hand {
    ($($name:ident => $schema:expr;)*) => { $(
        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    )* };
}

macro_rules! shaped {
    ($($name:ident => $shape:ty;)*) => { $(
        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                <$shape>::json_schema(generator)
            }
        }
    )* };
}

by_hand! {
    TaskId => text_id("Identifies one task.");
    SessionId => text_id("Identifies one session.");
    ToolCallId => text_id("Identifies one tool call within a session; its result carries the same.");
    ApprovalId => text_id("Identifies one question to a person.");
    AgentName => name("The name of an agent: letters, digits, spaces and `_ - .`.");
    SourceName => name("The label of an external source of events, such as `webhook`.");
    ModelRef => json_schema!({
        "description": "A model of a provider, as `PROVIDER/MODEL`.",
        "type": "string",
        "pattern": "^[A-Za-z0-9._-]+/\\S+$",
        "maxLength": MODEL_REF_BYTES_MAX,
        "examples": ["scripted/hello"],
    });
    Sender => json_schema!({
        "description": "Who sent something: `user`, `event:SOURCE`, or an agent's name.",
        "type": "string",
        "minLength": 1,
    });
    RawJson => json_schema!({ "description": "Any JSON, kept byte for byte." });
}

shaped! {
    Message => MessageShape;
    UserMessage => UserShape;
    InputBlock => BlockShape;
}

/// The limit is in bytes; the number of characters may be lower.
fn text_id(description: &str) -> Schema {
    json_schema!({
        "description": description,
        "type": "string",
        "pattern": "^\\S+$",
        "maxLength": TEXT_ID_BYTES_MAX,
    })
}

fn name(description: &str) -> Schema {
    json_schema!({
        "description": description,
        "type": "string",
        "minLength": 1,
        "maxLength": NAME_BYTES_MAX,
    })
}

/// A text, or a user message whose `timestamp` is optional.
#[derive(JsonSchema)]
#[serde(untagged)]
pub enum MessageOrText {
    /// A text.
    Text(#[schemars(regex(pattern = r"\S"))] String),
    /// Text and images.
    Message {
        /// Text and images, in order; at least one.
        #[schemars(length(min = 1))]
        content: Vec<InputBlock>,
        /// Time of writing. Absent: now.
        timestamp: Option<DateTime<Utc>>,
    },
    /// Parts, as Distri writes them.
    Parts {
        /// Only `user`.
        role: Option<String>,
        /// Texts and images, in order; at least one.
        #[schemars(length(min = 1))]
        parts: Vec<Value>,
    },
}

/// A text, or a list of blocks.
#[derive(JsonSchema)]
#[serde(untagged)]
pub enum BlocksOrText {
    /// A text.
    Text(String),
    /// Text and images, in order.
    Blocks(Vec<InputBlock>),
}

/// A block that one agent sends to another.
#[derive(JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PeerBlock {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image {
        /// Media type, such as `image/png`.
        #[schemars(regex(pattern = r"^image/[A-Za-z0-9+.-]+$"))]
        media_type: String,
        /// Bytes of the image, in base64.
        #[schemars(regex(pattern = r"^([A-Za-z0-9+/]{4})+$"))]
        data: String,
    },
}

/// What a user message or a tool result may hold.
#[derive(JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
enum BlockShape {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An image; its bytes are base64.
    Image {
        /// Media type, such as `image/png`.
        #[schemars(regex(pattern = r"^image/[A-Za-z0-9+.-]+$"))]
        mime_type: String,
        /// Bytes of the image, in base64.
        #[schemars(regex(pattern = r"^([A-Za-z0-9+/]{4})+$"))]
        data: String,
    },
}

/// Input of the model.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct UserShape {
    /// Text and images, in order.
    content: Vec<InputBlock>,
    /// Time of writing.
    timestamp: DateTime<Utc>,
}

/// One entry of a conversation, as in session file v1.
#[derive(JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
enum MessageShape {
    /// Input of the model.
    User {
        /// Text and images, in order.
        content: Vec<InputBlock>,
        /// Time of writing.
        timestamp: DateTime<Utc>,
    },
    /// Answer of the model.
    Assistant {
        /// Text, thinking and tool calls, in the order the model began them.
        content: Vec<AssistantBlockShape>,
        /// Why the model stopped.
        stop_reason: StopReason,
        /// The provider's own word for it, unchanged.
        raw_stop_reason: Option<String>,
        /// Tokens used.
        usage: Option<Usage>,
        /// Model that wrote it, as `PROVIDER/MODEL`.
        model: Option<ModelRef>,
        /// Time when the answer began.
        timestamp: DateTime<Utc>,
    },
    /// Result of a tool call.
    ToolResult {
        /// Id of the tool call.
        tool_call_id: ToolCallId,
        /// Name of the tool.
        tool_name: String,
        /// Content that the model reads.
        content: Vec<InputBlock>,
        /// Whether the tool failed.
        is_error: Option<bool>,
        /// Time of the result.
        timestamp: DateTime<Utc>,
    },
}

/// What an assistant message may hold.
#[derive(JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schemars(rename = "AssistantBlock")]
#[expect(dead_code, reason = "only its schema is used")]
enum AssistantBlockShape {
    /// Text for the reader.
    Text {
        /// The text.
        text: String,
    },
    /// Thinking of the model.
    Thinking {
        /// What the model thought; empty when its provider hides it.
        thinking: String,
        /// Signature of the provider, which goes back to it unchanged. Absent: none.
        signature: Option<String>,
    },
    /// A tool call.
    ToolCall {
        /// Id of the call; its result carries the same.
        id: ToolCallId,
        /// Name of the tool.
        name: String,
        /// Arguments of the call, by name.
        arguments: Map<String, Value>,
        /// Signature of the provider, which goes back to it unchanged. Absent: none.
        signature: Option<String>,
    },
}
