//! The course of one answer, independent of any wire.

use std::time::Duration;

use antiphon_core::Usage;

/// One answer, from its first item to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scenario {
    /// Items of the answer, in order.
    pub steps: Vec<Step>,
    /// How the answer ends.
    pub ending: Ending,
}

/// One item. Blocks are numbered from 0 in the order they begin; a wire that does
/// not number its blocks, or does not report their end, leaves that out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
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
        /// Text to append.
        delta: String,
    },
    /// The signature of a thinking block.
    Signature {
        /// Number of the block.
        block: u32,
        /// The whole signature.
        signature: String,
    },
    /// A tool call begins.
    CallBegin {
        /// Number of the block.
        block: u32,
        /// Id of the call.
        id: String,
        /// Name of the tool.
        name: String,
    },
    /// More of the JSON text of a call's arguments.
    CallDelta {
        /// Number of the block.
        block: u32,
        /// JSON text to append.
        delta: String,
    },
    /// A block ends. In an answer that ends well, each block does.
    BlockEnd {
        /// Number of the block.
        block: u32,
    },
    /// A keep-alive without other meaning.
    Alive,
    /// Tokens used so far, in total.
    Usage(Usage),
    /// Why the model stopped.
    Stop(StopWord),
}

/// Why a model stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StopWord {
    /// It finished.
    EndTurn,
    /// It reached a token limit.
    Length,
    /// It calls tools.
    ToolUse,
    /// A word that is not mapped.
    Unheard,
}

/// How an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// As the protocol requires.
    Whole,
    /// The connection breaks.
    Cut,
    /// Nothing more arrives, and the connection stays open.
    Stall,
    /// The provider refuses: with an HTTP status before any item, else within the
    /// stream.
    Refused(Refusal),
    /// Bytes arrive that are not valid in this protocol.
    Garbage,
}

/// Why a provider refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The request is invalid.
    InvalidRequest,
    /// The conversation is too long for the model.
    ContextOverflow,
    /// The key is wrong.
    Authentication,
    /// The key lacks permission.
    Permission,
    /// The model does not exist.
    NotFound,
    /// Too many requests.
    RateLimited {
        /// Time to wait, in whole seconds.
        retry_after: Duration,
    },
    /// The provider is overloaded.
    Overloaded,
    /// An internal error, with HTTP status 500.
    Server,
}

impl Scenario {
    /// A scenario that ends well.
    pub fn whole(steps: impl IntoIterator<Item = Step>) -> Self {
        Self::ending(Ending::Whole, steps)
    }

    /// The same scenario with this end.
    pub fn ending(ending: Ending, steps: impl IntoIterator<Item = Step>) -> Self {
        Self { steps: steps.into_iter().collect(), ending }
    }
}

impl Step {
    /// More text.
    pub fn text(block: u32, delta: impl Into<String>) -> Self {
        Self::Text { block, delta: delta.into() }
    }

    /// A whole call: its start, its arguments in one piece, its end.
    pub fn call(block: u32, id: &str, name: &str, arguments: &str) -> Vec<Self> {
        let begin = Self::CallBegin { block, id: id.to_owned(), name: name.to_owned() };
        let delta = Self::CallDelta { block, delta: arguments.to_owned() };
        vec![begin, delta, Self::BlockEnd { block }]
    }
}
