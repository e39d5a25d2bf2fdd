//! The JSON of messages: flat records with optional fields, converted into the
//! domain or refused. Flat, because `serde`'s tagged enums buffer their input and lose the
//! text of raw JSON.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{
    AssistantBlock, AssistantMessage, IMAGE_BYTES_MAX, ImageBlock, InputBlock, Message,
    OpaqueBlock, Signature, TextBlock, ThinkingBlock, ToolArguments, ToolCallBlock,
    ToolResultMessage, UserMessage,
};
use crate::{ModelRef, RawJson, StopReason, ToolCallId, Usage};

/// Why a JSON value is not a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// `type` is not `user`, `assistant` or `tool_result`.
    #[error("unknown message type `{found}`, expected one of `user`, `assistant`, `tool_result`")]
    UnknownMessage {
        /// The `type` that was found.
        found: String,
    },
    /// `type` is valid, but only `user` is allowed here.
    #[error("message type `{found}` where only `user` may be, expected `user`")]
    NotUser {
        /// The `type` that was found.
        found: String,
    },
    /// The `type` of a block is unknown.
    #[error(
        "content[{index}]: unknown block type `{found}`, expected one of `text`, `thinking`, \
         `image`, `tool_call`"
    )]
    UnknownBlock {
        /// Index of the block, from 0.
        index: usize,
        /// The `type` that was found.
        found: String,
    },
    /// The type of block is not allowed in this type of message.
    #[error("content[{index}]: a `{message}` message cannot hold a `{block}` block")]
    BlockNotAllowed {
        /// Index of the block, from 0.
        index: usize,
        /// `type` of the message.
        message: &'static str,
        /// `type` of the block.
        block: String,
    },
    /// A required field is missing.
    #[error("{place}missing field `{field}`")]
    Missing {
        /// `content[2]: `, or empty for the message itself.
        place: String,
        /// Name of the field.
        field: &'static str,
    },
    /// `arguments` is neither an object nor the string of malformed arguments.
    #[error("content[{index}]: `arguments` must be a JSON object")]
    Arguments {
        /// Index of the block, from 0.
        index: usize,
    },
    /// `data` is not base64.
    #[error("content[{index}]: `data` is not base64: {reason}")]
    ImageData {
        /// Index of the block, from 0.
        index: usize,
        /// Error of the decoder.
        reason: String,
    },
    /// The image is not valid.
    #[error("content[{index}]: {reason}")]
    Image {
        /// Index of the block, from 0.
        index: usize,
        /// Error of [`ImageBlock::new`].
        reason: String,
    },
    /// The media type is not `image/…`.
    #[error("`{found}` is not an image type such as `image/png`")]
    ImageType {
        /// The media type that was found.
        found: String,
    },
    /// The image has no bytes.
    #[error("an image must not be empty")]
    ImageEmpty,
    /// Over [`IMAGE_BYTES_MAX`].
    #[error("an image may have {IMAGE_BYTES_MAX} bytes at most, this one has {bytes}")]
    ImageTooLarge {
        /// Size of the image, in bytes.
        bytes: usize,
    },
}

/// Any message.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct MessageWire {
    #[serde(rename = "type")]
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<ToolCallId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<String>,
    /// Always written. Optional, as `timestamp` is, so that an unknown `type` is named before what is missing.
    content: Option<Vec<BlockWire>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_reason: Option<StopReason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    raw_stop_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<ModelRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_error: Option<bool>,
    timestamp: Option<DateTime<Utc>>,
}

/// A message that is always a user message, so that its `type` is optional.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct UserWire {
    #[serde(rename = "type", default = "UserWire::kind")]
    kind: String,
    content: Vec<BlockWire>,
    timestamp: DateTime<Utc>,
}

#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct BlockWire {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    thinking: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<String>,
    /// Peers write `media_type`; session files write `mime_type`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    media_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mime_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<ToolCallId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    arguments: Option<RawJson>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    opaque: Option<OpaqueWire>,
}

#[derive(Clone, Serialize, Deserialize)]
struct OpaqueWire {
    kind: String,
    value: RawJson,
}

impl UserWire {
    fn kind() -> String {
        "user".to_owned()
    }
}

impl Message {
    /// Refuses the `type` of a message that is none.
    pub fn check_type(kind: &str) -> Result<(), MessageError> {
        if ["user", "assistant", "tool_result"].contains(&kind) {
            return Ok(());
        }
        Err(MessageError::UnknownMessage { found: kind.to_owned() })
    }
}

impl TryFrom<MessageWire> for Message {
    type Error = MessageError;

    fn try_from(wire: MessageWire) -> Result<Self, MessageError> {
        let missing = |field| MessageError::Missing { place: String::new(), field };
        Self::check_type(&wire.kind)?;
        let content = wire.content.ok_or_else(|| missing("content"))?;
        let timestamp = wire.timestamp.ok_or_else(|| missing("timestamp"))?;
        match wire.kind.as_str() {
            "user" => {
                Ok(Self::User(UserMessage { content: input_blocks(content, "user")?, timestamp }))
            }
            "assistant" => Ok(Self::Assistant(AssistantMessage {
                content: assistant_blocks(content)?,
                stop_reason: wire.stop_reason.ok_or_else(|| missing("stop_reason"))?,
                raw_stop_reason: wire.raw_stop_reason.unwrap_or_default(),
                usage: wire.usage.unwrap_or_default(),
                model: wire.model,
                timestamp,
            })),
            "tool_result" => Ok(Self::ToolResult(ToolResultMessage {
                tool_call_id: wire.tool_call_id.ok_or_else(|| missing("tool_call_id"))?,
                tool_name: wire.tool_name.ok_or_else(|| missing("tool_name"))?,
                content: input_blocks(content, "tool_result")?,
                is_error: wire.is_error.unwrap_or_default(),
                timestamp,
            })),
            _ => Err(MessageError::UnknownMessage { found: wire.kind }),
        }
    }
}

impl From<Message> for MessageWire {
    fn from(message: Message) -> Self {
        let empty = |kind: &str, content, timestamp| Self {
            kind: kind.to_owned(),
            tool_call_id: None,
            tool_name: None,
            content: Some(content),
            stop_reason: None,
            raw_stop_reason: None,
            usage: None,
            model: None,
            is_error: None,
            timestamp: Some(timestamp),
        };
        match message {
            Message::User(UserMessage { content, timestamp }) => {
                empty("user", content.into_iter().map(BlockWire::from).collect(), timestamp)
            }
            Message::Assistant(message) => Self {
                stop_reason: Some(message.stop_reason),
                raw_stop_reason: Some(message.raw_stop_reason).filter(|word| !word.is_empty()),
                usage: Some(message.usage),
                model: message.model,
                ..empty(
                    "assistant",
                    message.content.into_iter().map(BlockWire::from).collect(),
                    message.timestamp,
                )
            },
            Message::ToolResult(message) => Self {
                tool_call_id: Some(message.tool_call_id),
                tool_name: Some(message.tool_name),
                is_error: Some(message.is_error),
                ..empty(
                    "tool_result",
                    message.content.into_iter().map(BlockWire::from).collect(),
                    message.timestamp,
                )
            },
        }
    }
}

impl TryFrom<UserWire> for UserMessage {
    type Error = MessageError;

    fn try_from(wire: UserWire) -> Result<Self, MessageError> {
        if wire.kind != "user" {
            return Err(MessageError::NotUser { found: wire.kind });
        }
        Ok(Self { content: input_blocks(wire.content, "user")?, timestamp: wire.timestamp })
    }
}

impl From<UserMessage> for UserWire {
    fn from(message: UserMessage) -> Self {
        Self {
            kind: Self::kind(),
            content: message.content.into_iter().map(BlockWire::from).collect(),
            timestamp: message.timestamp,
        }
    }
}

/// Reads the blocks of a message of type `message` that holds text and images only.
pub(crate) fn input_blocks(
    blocks: Vec<BlockWire>,
    message: &'static str,
) -> Result<Vec<InputBlock>, MessageError> {
    let read = |(index, wire): (usize, BlockWire)| match wire.kind.as_str() {
        "text" => Ok(InputBlock::Text(wire.into_text(index)?)),
        "image" => Ok(InputBlock::Image(wire.into_image(index)?)),
        "thinking" | "tool_call" => {
            Err(MessageError::BlockNotAllowed { index, message, block: wire.kind })
        }
        _ => Err(MessageError::UnknownBlock { index, found: wire.kind }),
    };
    blocks.into_iter().enumerate().map(read).collect()
}

fn assistant_blocks(blocks: Vec<BlockWire>) -> Result<Vec<AssistantBlock>, MessageError> {
    let read = |(index, wire): (usize, BlockWire)| match wire.kind.as_str() {
        "text" => Ok(AssistantBlock::Text(wire.into_text(index)?)),
        "thinking" => wire.into_thinking(index),
        "tool_call" => Ok(AssistantBlock::ToolCall(wire.into_tool_call(index)?)),
        "image" => {
            Err(MessageError::BlockNotAllowed { index, message: "assistant", block: wire.kind })
        }
        _ => Err(MessageError::UnknownBlock { index, found: wire.kind }),
    };
    blocks.into_iter().enumerate().map(read).collect()
}

impl BlockWire {
    /// The same block in the form that peers write.
    pub(crate) fn for_peers(mut self) -> Self {
        self.media_type = self.media_type.or(self.mime_type.take());
        self
    }

    /// A block in the form that peers write.
    pub(crate) fn of_peer(
        kind: String,
        text: Option<String>,
        data: Option<String>,
        media_type: Option<String>,
    ) -> Self {
        Self { kind, text, data, media_type, ..Self::default() }
    }

    fn of(kind: &str) -> Self {
        Self { kind: kind.to_owned(), ..Self::default() }
    }

    fn into_text(self, index: usize) -> Result<TextBlock, MessageError> {
        Ok(TextBlock { text: self.text.ok_or_else(|| missing(index, "text"))? })
    }

    fn into_image(self, index: usize) -> Result<ImageBlock, MessageError> {
        let data = self.data.ok_or_else(|| missing(index, "data"))?;
        let mime_type =
            self.mime_type.or(self.media_type).ok_or_else(|| missing(index, "mime_type"))?;
        // Four characters hold three bytes: check before allocating that much.
        if data.len() / 4 > IMAGE_BYTES_MAX.div_ceil(3) + 1 {
            let error = MessageError::ImageTooLarge { bytes: data.len() / 4 * 3 };
            return Err(MessageError::Image { index, reason: error.to_string() });
        }
        let bytes = BASE64
            .decode(data)
            .map_err(|error| MessageError::ImageData { index, reason: error.to_string() })?;
        ImageBlock::new(mime_type, bytes)
            .map_err(|error| MessageError::Image { index, reason: error.to_string() })
    }

    fn into_thinking(self, index: usize) -> Result<AssistantBlock, MessageError> {
        if let Some(OpaqueWire { kind, value }) = self.opaque {
            return Ok(AssistantBlock::Opaque(OpaqueBlock { kind, value }));
        }
        Ok(AssistantBlock::Thinking(ThinkingBlock {
            thinking: self.thinking.ok_or_else(|| missing(index, "thinking"))?,
            signature: self.signature.map(Signature),
        }))
    }

    fn into_tool_call(self, index: usize) -> Result<ToolCallBlock, MessageError> {
        let json = self.arguments.ok_or_else(|| missing(index, "arguments"))?;
        let arguments = if json.is_object() {
            ToolArguments::Object(json)
        } else {
            let text = json.to::<String>().map_err(|_| MessageError::Arguments { index })?;
            ToolArguments::Malformed(text)
        };
        Ok(ToolCallBlock {
            id: self.id.ok_or_else(|| missing(index, "id"))?,
            name: self.name.ok_or_else(|| missing(index, "name"))?,
            arguments,
            signature: self.signature.map(Signature),
        })
    }
}

fn missing(index: usize, field: &'static str) -> MessageError {
    MessageError::Missing { place: format!("content[{index}]: "), field }
}

impl From<InputBlock> for BlockWire {
    fn from(block: InputBlock) -> Self {
        match block {
            InputBlock::Text(TextBlock { text }) => Self { text: Some(text), ..Self::of("text") },
            InputBlock::Image(image) => Self {
                data: Some(BASE64.encode(image.data())),
                mime_type: Some(image.mime_type().to_owned()),
                ..Self::of("image")
            },
        }
    }
}

impl From<AssistantBlock> for BlockWire {
    fn from(block: AssistantBlock) -> Self {
        match block {
            AssistantBlock::Text(TextBlock { text }) => {
                Self { text: Some(text), ..Self::of("text") }
            }
            AssistantBlock::Thinking(ThinkingBlock { thinking, signature }) => Self {
                thinking: Some(thinking),
                signature: signature.map(|Signature(text)| text),
                ..Self::of("thinking")
            },
            AssistantBlock::ToolCall(call) => Self {
                id: Some(call.id),
                name: Some(call.name),
                arguments: Some(match call.arguments {
                    ToolArguments::Object(json) => json,
                    ToolArguments::Malformed(text) => RawJson::string(&text),
                }),
                signature: call.signature.map(|Signature(text)| text),
                ..Self::of("tool_call")
            },
            AssistantBlock::Opaque(OpaqueBlock { kind, value }) => Self {
                thinking: Some(String::new()),
                opaque: Some(OpaqueWire { kind, value }),
                ..Self::of("thinking")
            },
        }
    }
}

impl Serialize for ToolCallBlock {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        BlockWire::from(AssistantBlock::ToolCall(self.clone())).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ToolCallBlock {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = BlockWire::deserialize(deserializer)?;
        wire.into_tool_call(0).map_err(serde::de::Error::custom)
    }
}
