//! What happens on the wire during one answer, in no wire's words.

use std::time::Duration;

use antiphon_core::Usage;

/// One answer, from its beginning to how it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scenario {
    /// What is said, in order.
    pub steps: Vec<Step>,
    /// What happens then.
    pub ending: Ending,
}

/// One thing that is said. Blocks are numbered from 0 in the order they begin; a wire that does
/// not number its blocks, or does not say when they end, leaves that out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
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
        /// What is added.
        delta: String,
    },
    /// The signature of a thinking block.
    Signature {
        /// Which block.
        block: u32,
        /// All of it.
        signature: String,
    },
    /// A call begins.
    CallBegin {
        /// Which block.
        block: u32,
        /// The call's id.
        id: String,
        /// The tool.
        name: String,
    },
    /// More of the JSON text of a call's arguments.
    CallDelta {
        /// Which block.
        block: u32,
        /// What is added.
        delta: String,
    },
    /// A block ends. In an answer that ends whole, each block does.
    BlockEnd {
        /// Which block.
        block: u32,
    },
    /// A sign of life that means nothing else.
    Alive,
    /// What the answer has cost so far, in all.
    Usage(Usage),
    /// Why the model stopped.
    Stop(StopWord),
}

/// Why a model stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StopWord {
    /// It is done.
    EndTurn,
    /// It ran into a token limit.
    Length,
    /// It wants its calls run.
    ToolUse,
    /// A word that this protocol does not have yet.
    Unheard,
}

/// How an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// As the protocol wants it.
    Whole,
    /// The connection breaks.
    Cut,
    /// Nothing more comes, and the connection stays.
    Stall,
    /// The provider says no: with an HTTP status when nothing was said before, else in the
    /// stream.
    Refused(Refusal),
    /// Something comes that is not of this protocol.
    Garbage,
}

/// Why a provider says no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The request makes no sense.
    InvalidRequest,
    /// The conversation is too long for the model.
    ContextOverflow,
    /// The key is wrong.
    Authentication,
    /// The key may not do this.
    Permission,
    /// No such model.
    NotFound,
    /// Too many requests.
    RateLimited {
        /// How long to wait, in whole seconds.
        retry_after: Duration,
    },
    /// Too much to do.
    Overloaded,
    /// A fault of its own, with HTTP status 500.
    Server,
}

impl Scenario {
    /// Ends whole.
    pub fn whole(steps: impl IntoIterator<Item = Step>) -> Self {
        Self::ending(Ending::Whole, steps)
    }

    /// Ends like that.
    pub fn ending(ending: Ending, steps: impl IntoIterator<Item = Step>) -> Self {
        Self { steps: steps.into_iter().collect(), ending }
    }
}

impl Step {
    /// More text.
    pub fn text(block: u32, delta: impl Into<String>) -> Self {
        Self::Text { block, delta: delta.into() }
    }

    /// A whole call: its beginning, its arguments in one piece, its end.
    pub fn call(block: u32, id: &str, name: &str, arguments: &str) -> Vec<Self> {
        let begin = Self::CallBegin { block, id: id.to_owned(), name: name.to_owned() };
        let delta = Self::CallDelta { block, delta: arguments.to_owned() };
        vec![begin, delta, Self::BlockEnd { block }]
    }
}
