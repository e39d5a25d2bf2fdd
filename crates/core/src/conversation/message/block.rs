//! Blocks of messages.

use std::fmt;
use std::sync::Arc;

use crate::conversation::message::MessageError;
use crate::{RawJson, ToolCallId};

/// Largest image, in bytes before base64: the lowest limit of the providers. One provider counts
/// 5 MiB after base64.
pub const IMAGE_BYTES_MAX: usize = 5 * 1024 * 1024 / 4 * 3;

/// What a user message or a tool result may hold.
#[derive(Debug, Clone, PartialEq)]
pub enum InputBlock {
    /// Text.
    Text(TextBlock),
    /// An image.
    Image(ImageBlock),
}

/// What an assistant message may hold.
#[derive(Debug, Clone, PartialEq)]
pub enum AssistantBlock {
    /// Text for the reader.
    Text(TextBlock),
    /// Thinking of the model.
    Thinking(ThinkingBlock),
    /// A tool call.
    ToolCall(ToolCallBlock),
    /// A block that only its own model understands.
    Opaque(OpaqueBlock),
}

/// Text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextBlock {
    /// The text.
    pub text: String,
}

/// Thinking of the model, with the signature that the model checks when it reads it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThinkingBlock {
    /// The thinking; empty when the provider returns only the signature.
    pub thinking: String,
    /// Signature of the model. `None` when the provider does not sign.
    pub signature: Option<Signature>,
}

/// An image of at most [`IMAGE_BYTES_MAX`] bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct ImageBlock {
    data: Arc<[u8]>,
    mime_type: String,
}

/// A tool call of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCallBlock {
    /// Id of the call; its result carries the same id.
    pub id: ToolCallId,
    /// Name of the tool.
    pub name: String,
    /// Arguments of the call.
    pub arguments: ToolArguments,
    /// Signature of the model. `None` when the provider does not sign calls.
    pub signature: Option<Signature>,
}

/// Arguments of a call, as the model wrote them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolArguments {
    /// A JSON object, byte for byte.
    Object(RawJson),
    /// Anything else: interrupted, or not JSON. Kept to show the model what it wrote; never run.
    /// In JSON it is a string where an object should be.
    Malformed(String),
}

/// A block of an unknown kind, or an encrypted one (`redacted_thinking`). It is
/// kept and goes back, unchanged, to the model it came from. In JSON it is a `thinking` block
/// with empty `thinking` and an `opaque` field, so that every reader of v1 can skip it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpaqueBlock {
    /// The provider's name for the kind.
    pub kind: String,
    /// The whole block, byte for byte.
    pub value: RawJson,
}

/// A provider's opaque signature, kept verbatim. Base64 in practice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature(pub String);

impl InputBlock {
    /// A text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextBlock { text: text.into() })
    }
}

impl AssistantBlock {
    /// A text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextBlock { text: text.into() })
    }

    /// The text of a text block; `None` for other blocks.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(block) => Some(&block.text),
            Self::Thinking(_) | Self::ToolCall(_) | Self::Opaque(_) => None,
        }
    }
}

impl ImageBlock {
    /// Checks an image; refuses one that is empty, too large or not of an `image/…` type.
    pub fn new(
        mime_type: impl Into<String>,
        data: impl Into<Arc<[u8]>>,
    ) -> Result<Self, MessageError> {
        let (mime_type, data) = (mime_type.into(), data.into());
        let subtype = mime_type.strip_prefix("image/").unwrap_or_default();
        if subtype.is_empty()
            || !subtype.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
        {
            return Err(MessageError::ImageType { found: mime_type });
        }
        if data.is_empty() {
            return Err(MessageError::ImageEmpty);
        }
        if data.len() > IMAGE_BYTES_MAX {
            return Err(MessageError::ImageTooLarge { bytes: data.len() });
        }
        Ok(Self { data, mime_type })
    }

    /// The bytes.
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// The media type, for instance `image/png`.
    pub fn mime_type(&self) -> &str {
        &self.mime_type
    }
}

impl fmt::Debug for ImageBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ImageBlock({}, {} bytes)", self.mime_type, self.data.len())
    }
}

impl ToolArguments {
    /// Parses the arguments that a model wrote. Empty text means no arguments.
    pub fn from_model(text: String) -> Self {
        if text.trim().is_empty() {
            return Self::Object(RawJson::empty_object());
        }
        match RawJson::parse(&text) {
            Ok(json) if json.is_object() => Self::Object(json),
            Ok(_) | Err(_) => Self::Malformed(text),
        }
    }

    /// The JSON object; `None` when malformed.
    pub fn object(&self) -> Option<&RawJson> {
        match self {
            Self::Object(json) => Some(json),
            Self::Malformed(_) => None,
        }
    }
}
