//! The port to models.
//!
//! A provider turns a [`Request`] into a stream of [`Piece`]s: what arrived on its wire, in
//! order, without interpretation. [`MessageStream`](crate::MessageStream) assembles pieces
//! into the message, in the same way for every provider. To write a provider:
//!
//! 1. Return a [`PieceSource`] at once; send the request when the source is first polled.
//! 2. Yield one [`Piece`] per item of the wire. Number blocks as the wire does; the assembler
//!    handles order and interleaving.
//! 3. Yield [`Piece::Done`] when the wire reports a complete answer. A source that ends without
//!    it was interrupted.
//! 4. Yield [`Piece::Model`] before any output: only the model that answers may read its own
//!    thinking again.
//! 5. Yield `Err` once, last. Dropping the source must end the request.
//!
//! A [`Piece`] and a [`ProviderError`] serialize as a JSON object with one key, the name of the
//! variant: `{"text":{"block":0,"delta":"Hi"}}`. Recordings and the protocol of the sandbox use
//! this format; `docs/record-replay.md` documents it.

use std::pin::Pin;
use std::time::Duration;

use futures_core::Stream;
use serde::{Deserialize, Serialize};

use crate::{ModelRef, RawJson, Request, StopReason, Usage};

/// Pieces of one answer, in the order of the wire.
pub type PieceSource = Pin<Box<dyn Stream<Item = Result<Piece, ProviderError>> + Send>>;

/// Calls models. Cheap to share; one instance serves any number of requests at once.
pub trait Provider: Send + Sync {
    /// Opens one answer: one request, sent when the source is polled. Dropping the source ends
    /// the request.
    fn open(&self, request: Request) -> PieceSource;
}

impl<P: Provider + ?Sized> Provider for std::sync::Arc<P> {
    fn open(&self, request: Request) -> PieceSource {
        (**self).open(request)
    }
}

/// One item of a provider's wire. `block` numbers the block an item belongs to, as the wire does;
/// the first piece of a number opens the block.
// Tagged from outside: a `RawJson` cannot be read behind an inner tag.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Piece {
    /// The model that answers.
    Model(ModelRef),
    /// More text.
    Text {
        /// Number of the block.
        block: u32,
        /// Text to append.
        delta: String,
    },
    /// More thinking.
    Thinking {
        /// Number of the block.
        block: u32,
        /// Text to append; may be empty to open the block.
        delta: String,
    },
    /// A tool call, or more of one. Some wires repeat id and name in each piece: the first
    /// non-empty value counts.
    ToolCall {
        /// Number of the block.
        block: u32,
        /// Id of the call, when the wire gives one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// Name of the tool, once known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// More of the JSON text of the arguments.
        arguments: String,
    },
    /// More of the signature of a thinking block or a tool call.
    Signature {
        /// Number of the block.
        block: u32,
        /// Text to append.
        delta: String,
    },
    /// A whole block of a kind that only its own model understands.
    Opaque {
        /// Number of the block.
        block: u32,
        /// The provider's name for the kind.
        kind: String,
        /// The block, byte for byte.
        value: RawJson,
    },
    /// The block is complete. Blocks of wires without this item are complete at the end.
    BlockEnd {
        /// Number of the block.
        block: u32,
    },
    /// Tokens used so far; replaces any earlier value.
    Usage(Usage),
    /// Why the model stopped.
    Stop(StopSignal),
    /// The provider sent something without content: it still works.
    #[serde(with = "empty_object")]
    Alive,
    /// The answer is complete.
    #[serde(with = "empty_object")]
    Done,
}

/// Why the model stopped, in our word and in the provider's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StopSignal {
    /// Our word.
    pub reason: StopReason,
    /// The provider's word, unchanged.
    pub raw: String,
}

/// Why a model did not answer. Each variant is something else the caller does next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ProviderError {
    /// Fix the request.
    #[error("the provider refused the request: {message}")]
    InvalidRequest {
        /// Text of the provider.
        message: String,
    },
    /// Shorten the conversation.
    #[error("the conversation does not fit the model's context window: {message}")]
    ContextOverflow {
        /// Text of the provider.
        message: String,
    },
    /// Set the right key.
    #[error("the provider did not accept the key: {message}")]
    Authentication {
        /// Text of the provider.
        message: String,
    },
    /// Use another key, account or model.
    #[error("the key may not do this: {message}")]
    Permission {
        /// Text of the provider.
        message: String,
    },
    /// Name another model, or another address.
    #[error("the provider knows no such model or address: {message}")]
    NotFound {
        /// Text of the provider.
        message: String,
    },
    /// Wait.
    #[error("the provider's rate limit is reached: {message}")]
    RateLimited {
        /// Text of the provider.
        message: String,
        /// Time to wait. `None` when the provider does not give one.
        retry_after: Option<Duration>,
    },
    /// Wait, or use another model.
    #[error("the provider is overloaded: {message}")]
    Overloaded {
        /// Text of the provider.
        message: String,
        /// Time to wait. `None` when the provider does not give one.
        retry_after: Option<Duration>,
    },
    /// A fault at the provider.
    #[error("the provider failed (status {status}): {message}")]
    Server {
        /// HTTP status; 200 for a failure in mid-stream.
        status: u16,
        /// Text of the provider.
        message: String,
        /// Time to wait. `None` when the provider does not give one.
        retry_after: Option<Duration>,
    },
    /// Check the network, the address, the proxy or the certificates.
    #[error("the provider cannot be reached: {message}")]
    Connection {
        /// What failed.
        message: String,
    },
    /// Nothing arrived for too long.
    #[error("the provider took too long {phase}")]
    Timeout {
        /// Phase of the request that took too long.
        phase: TimeoutPhase,
    },
    /// The stream ended before the answer did.
    #[error("the answer was cut off")]
    #[serde(with = "empty_object")]
    Cut,
    /// The provider broke the rules of its wire.
    #[error("the provider sent something unexpected: {message}")]
    Protocol {
        /// What was unexpected, and where.
        message: String,
    },
}

/// Phase of a request that took too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeoutPhase {
    /// The provider accepts the connection.
    Connect,
    /// The first byte of the answer arrives.
    FirstByte,
    /// The next byte of the answer arrives.
    Stall,
}

/// A variant without fields as `{"alive":{}}`, so that every variant is an object.
mod empty_object {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Empty {}

    pub(super) fn serialize<S: Serializer>(serializer: S) -> Result<S::Ok, S::Error> {
        Empty {}.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
        Empty::deserialize(deserializer).map(|Empty {}| ())
    }
}

impl std::fmt::Display for TimeoutPhase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Connect => "to accept the connection",
            Self::FirstByte => "to begin its answer",
            Self::Stall => "to go on with its answer",
        })
    }
}

impl Piece {
    /// Whether a reader sees a part of the answer with this piece. From then on a retry would show
    /// the reader two answers.
    pub fn is_output(&self) -> bool {
        match self {
            Self::Text { .. }
            | Self::Thinking { .. }
            | Self::ToolCall { .. }
            | Self::Signature { .. }
            | Self::Opaque { .. }
            | Self::BlockEnd { .. }
            | Self::Done => true,
            Self::Model(_) | Self::Usage(_) | Self::Stop(_) | Self::Alive => false,
        }
    }
}

impl ProviderError {
    /// Whether the same request may succeed later, unchanged.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::RateLimited { .. }
            | Self::Overloaded { .. }
            | Self::Server { .. }
            | Self::Connection { .. }
            | Self::Timeout { .. }
            | Self::Cut => true,
            Self::InvalidRequest { .. }
            | Self::ContextOverflow { .. }
            | Self::Authentication { .. }
            | Self::Permission { .. }
            | Self::NotFound { .. }
            | Self::Protocol { .. } => false,
        }
    }

    /// A stable word for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidRequest { .. } => "invalid_request",
            Self::ContextOverflow { .. } => "context_overflow",
            Self::Authentication { .. } => "authentication",
            Self::Permission { .. } => "permission",
            Self::NotFound { .. } => "not_found",
            Self::RateLimited { .. } => "rate_limited",
            Self::Overloaded { .. } => "overloaded",
            Self::Server { .. } => "server",
            Self::Connection { .. } => "connection",
            Self::Timeout { .. } => "timeout",
            Self::Cut => "cut",
            Self::Protocol { .. } => "protocol",
        }
    }

    /// The text of the provider. Errors without one give their own text.
    pub fn into_message(self) -> String {
        match self {
            Self::InvalidRequest { message }
            | Self::ContextOverflow { message }
            | Self::Authentication { message }
            | Self::Permission { message }
            | Self::NotFound { message }
            | Self::RateLimited { message, .. }
            | Self::Overloaded { message, .. }
            | Self::Server { message, .. }
            | Self::Connection { message }
            | Self::Protocol { message } => message,
            Self::Timeout { .. } | Self::Cut => self.to_string(),
        }
    }

    /// The same error with its message changed. Errors without a message stay as they are.
    #[must_use]
    pub fn map_message(mut self, change: impl FnOnce(&str) -> String) -> Self {
        match &mut self {
            Self::InvalidRequest { message }
            | Self::ContextOverflow { message }
            | Self::Authentication { message }
            | Self::Permission { message }
            | Self::NotFound { message }
            | Self::RateLimited { message, .. }
            | Self::Overloaded { message, .. }
            | Self::Server { message, .. }
            | Self::Connection { message }
            | Self::Protocol { message } => *message = change(message),
            Self::Timeout { .. } | Self::Cut => {}
        }
        self
    }

    /// Time the provider asks to wait before the next request. `None` when it does not say.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. }
            | Self::Overloaded { retry_after, .. }
            | Self::Server { retry_after, .. } => *retry_after,
            Self::InvalidRequest { .. }
            | Self::ContextOverflow { .. }
            | Self::Authentication { .. }
            | Self::Permission { .. }
            | Self::NotFound { .. }
            | Self::Connection { .. }
            | Self::Timeout { .. }
            | Self::Cut
            | Self::Protocol { .. } => None,
        }
    }
}
