//! What is shown as it comes and not kept.

use antiphon_core::{EVENT_VERSION, StreamEvent, TaskId, ToolCallId};
use serde::Serialize;

/// A piece of something that is still going on. In JSON it is like an event of the journal,
/// without a place in it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Delta {
    v: u32,
    /// Of which task.
    pub task_id: TaskId,
    /// How many answers of the task were whole before this one.
    #[serde(skip)]
    pub turn: u32,
    /// Bytes of text of the same answer that came before it: whoever joins in the middle knows what
    /// they missed.
    #[serde(skip)]
    pub text_at: usize,
    /// What came.
    #[serde(flatten)]
    pub event: DeltaEvent,
}

/// What came.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum DeltaEvent {
    /// More of an answer.
    Answer(StreamEvent),
    /// More of what a tool says.
    Tool(ToolDelta),
}

/// What a tool says while it runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub enum ToolDelta {
    /// More output.
    ToolOutput {
        /// Which call.
        tool_call_id: ToolCallId,
        /// What is added.
        delta: String,
    },
}

impl Delta {
    pub(crate) fn new(task_id: TaskId, turn: u32, event: DeltaEvent) -> Self {
        Self { v: EVENT_VERSION, task_id, turn, text_at: 0, event }
    }

    /// The same, behind so many bytes of text.
    pub(crate) fn behind(self, text_at: usize) -> Self {
        Self { text_at, ..self }
    }
}
