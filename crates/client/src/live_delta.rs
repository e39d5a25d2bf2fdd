//! Live deltas: pieces of answers and of tool output that are still being written.

use antiphon_core::{Event, StreamEvent, TaskId, ToolCallId};
use serde::Deserialize;

/// What a stream with deltas delivers.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamItem {
    /// An event of the journal.
    Event(Box<Event>),
    /// A piece that is not in the journal. The event that holds the whole message or result follows.
    Delta(LiveDelta),
}

/// A piece of an answer or of tool output. It may be missing or repeated after a connection broke.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct LiveDelta {
    /// Id of the task; absent when deltas of several tasks were missed.
    pub task_id: Option<TaskId>,
    /// Bytes of text of the same answer before this piece.
    #[serde(default)]
    pub text_at: usize,
    /// The piece.
    #[serde(flatten)]
    pub piece: DeltaPiece,
}

/// The piece of a delta.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum DeltaPiece {
    /// A piece of the model's answer.
    Answer(StreamEvent),
    /// Anything else.
    Other(DeltaNotice),
}

/// A delta that is no piece of the model's answer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub enum DeltaNotice {
    /// More output of a running tool.
    ToolOutput {
        /// Id of the call.
        tool_call_id: ToolCallId,
        /// Text to append.
        delta: String,
    },
    /// The answer broke off. What came of it does not count, and another answer follows.
    AnswerSuperseded {
        /// Code of the failure.
        code: String,
        /// Text of the failure.
        error: String,
    },
    /// The client was too slow, and deltas were dropped. The journal has the whole text.
    DeltasMissed {
        /// Number of dropped deltas.
        count: u64,
    },
}
