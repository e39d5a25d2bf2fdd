//! The port to models.
//!
//! A provider turns a [`Request`] into a stream of [`Piece`]s: what arrived on its wire, in
//! order, without interpretation. [`MessageStream`](crate::MessageStream) assembles pieces
//! into the message, for every provider alike. To write a provider:
//!
//! 1. Return a [`PieceSource`] at once; send the request when it is first polled.
//! 2. Yield one [`Piece`] per thing the wire says. Number blocks as the wire does; order and
//!    interleaving are the assembler's concern.
//! 3. Yield [`Piece::Done`] when the wire says that the answer is whole. A source that ends
//!    without it was cut off.
//! 4. Yield [`Piece::Model`] before any output: who answers decides who may read it again.
//! 5. Yield `Err` once, last. Dropping the source must end the request.

use std::pin::Pin;
use std::time::Duration;

use futures_core::Stream;

use crate::{ModelRef, RawJson, Request, StopReason, Usage};

/// Pieces of one answer, in the order of the wire.
pub type PieceSource = Pin<Box<dyn Stream<Item = Result<Piece, ProviderError>> + Send>>;

/// Asks models. Cheap to share; one instance serves any number of requests at once.
pub trait Provider: Send + Sync {
    /// Opens one answer: one request, sent when the source is polled. Dropping it ends it.
    fn open(&self, request: Request) -> PieceSource;
}

impl<P: Provider + ?Sized> Provider for std::sync::Arc<P> {
    fn open(&self, request: Request) -> PieceSource {
        (**self).open(request)
    }
}

/// One thing a provider's wire said. `block` numbers the block it belongs to, as the wire
/// does; the first piece of a number opens the block.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// Who answers.
    Model(ModelRef),
    /// More text.
    Text {
        /// Which block.
        block: u32,
        /// What is added.
        delta: String,
    },
    /// More thinking.
    Thinking {
        /// Which block.
        block: u32,
        /// What is added; may be empty to open the block.
        delta: String,
    },
    /// A tool call, or more of one. Some wires say id and name once, some each time: the first
    /// that is not empty counts.
    ToolCall {
        /// Which block.
        block: u32,
        /// Its id, where the wire gives one.
        id: Option<String>,
        /// Its tool, once known.
        name: Option<String>,
        /// More of the JSON text of its arguments.
        arguments: String,
    },
    /// More of the signature of a thinking block or a tool call.
    Signature {
        /// Which block.
        block: u32,
        /// What is added.
        delta: String,
    },
    /// A whole block of a kind that only its own model understands.
    Opaque {
        /// Which block.
        block: u32,
        /// The provider's name for the kind.
        kind: String,
        /// The block.
        value: RawJson,
    },
    /// Nothing more for this block. Wires that do not say so are closed at the end.
    BlockEnd {
        /// Which block.
        block: u32,
    },
    /// What the answer has cost so far; replaces what was said before.
    Usage(Usage),
    /// Why the model stopped.
    Stop(StopSignal),
    /// The wire said something that means nothing but that it is alive.
    Alive,
    /// The answer is whole.
    Done,
}

/// Why the model stopped, in our word and in the provider's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopSignal {
    /// Ours.
    pub reason: StopReason,
    /// The provider's.
    pub raw: String,
}

/// Why a model did not answer. Each variant is something else to do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    /// Mend the request.
    #[error("the provider refused the request: {message}")]
    InvalidRequest {
        /// What it said.
        message: String,
    },
    /// Shorten the conversation.
    #[error("the conversation does not fit the model's context window: {message}")]
    ContextOverflow {
        /// What it said.
        message: String,
    },
    /// Set the right key.
    #[error("the provider did not accept the key: {message}")]
    Authentication {
        /// What it said.
        message: String,
    },
    /// Use another key, account or model.
    #[error("the key may not do this: {message}")]
    Permission {
        /// What it said.
        message: String,
    },
    /// Name another model, or another address.
    #[error("the provider knows no such model or address: {message}")]
    NotFound {
        /// What it said.
        message: String,
    },
    /// Wait.
    #[error("the provider's rate limit is reached: {message}")]
    RateLimited {
        /// What it said.
        message: String,
        /// How long to wait, where it says so.
        retry_after: Option<Duration>,
    },
    /// Wait, or ask another model.
    #[error("the provider is overloaded: {message}")]
    Overloaded {
        /// What it said.
        message: String,
        /// How long to wait, where it says so.
        retry_after: Option<Duration>,
    },
    /// A fault at the provider.
    #[error("the provider failed (status {status}): {message}")]
    Server {
        /// The HTTP status, or 200 when it failed in mid-stream.
        status: u16,
        /// What it said.
        message: String,
        /// How long to wait, where it says so.
        retry_after: Option<Duration>,
    },
    /// Look at the network, the address, the proxy or the certificates.
    #[error("the provider cannot be reached: {message}")]
    Connection {
        /// What failed.
        message: String,
    },
    /// Nothing came for too long.
    #[error("the provider took too long {phase}")]
    Timeout {
        /// When.
        phase: TimeoutPhase,
    },
    /// The stream ended before the answer did.
    #[error("the answer was cut off")]
    Cut,
    /// What came is not what the wire promises.
    #[error("the provider sent something unexpected: {message}")]
    Protocol {
        /// What and where.
        message: String,
    },
}

/// What the provider took too long for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimeoutPhase {
    /// Taking the connection.
    Connect,
    /// The first byte of its answer.
    FirstByte,
    /// The next byte of its answer.
    Stall,
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
    /// Whether a reader may have seen something of the answer once this is out: from then on
    /// the answer cannot be begun again behind the reader's back.
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

    /// What the provider said, or what can be said without it.
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

    /// How long the provider asked to be left alone.
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
