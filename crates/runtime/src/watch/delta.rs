//! Live deltas: shown to watchers as they come, and not stored.

use antiphon_core::{EVENT_VERSION, Seq, StreamEvent, TaskId, ToolCallId};
use serde::Serialize;

/// A piece of an answer or of tool output in progress. Its JSON is like a journal event without a
/// position.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Delta {
    v: u32,
    /// Id of the task.
    pub task_id: TaskId,
    /// Number of complete answers of the task before this one.
    #[serde(skip)]
    pub turn: u32,
    /// Seq of the last event of the task before the answer or the call began. A delta with a lower one
    /// than an event that supersedes the answer belongs to the superseded answer.
    #[serde(skip)]
    pub after: Seq,
    /// Bytes of text of the same answer before this delta, so that a watcher that joins late knows
    /// what it missed.
    #[serde(skip_serializing_if = "is_zero")]
    pub text_at: usize,
    /// The piece.
    #[serde(flatten)]
    pub event: DeltaEvent,
}

/// A piece of an answer or of tool output.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum DeltaEvent {
    /// A piece of the model's answer.
    Answer(StreamEvent),
    /// A piece of tool output.
    Tool(ToolDelta),
    /// News about the whole answer.
    State(AnswerDelta),
}

/// News about an answer in progress.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub enum AnswerDelta {
    /// The answer broke off. What was shown of it does not count, and another answer follows.
    AnswerSuperseded {
        /// Code of the failure.
        code: String,
        /// Text of the failure.
        error: String,
    },
}

/// Output of a running tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub enum ToolDelta {
    /// More output.
    ToolOutput {
        /// Id of the call.
        tool_call_id: ToolCallId,
        /// The new text.
        delta: String,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Delta {
    /// A delta that another orchestrator published and sent in the order of its events: it belongs to the answer
    /// that its reader shows. `after` is the last event of the task that the reader has seen.
    pub fn relayed(task_id: TaskId, after: Seq, text_at: usize, event: DeltaEvent) -> Self {
        Self { v: EVENT_VERSION, task_id, turn: 0, after, text_at, event }
    }

    pub(crate) fn new(task_id: TaskId, turn: u32, after: Seq, event: DeltaEvent) -> Self {
        Self { v: EVENT_VERSION, task_id, turn, after, text_at: 0, event }
    }

    /// The same delta, after `text_at` bytes of text.
    pub(crate) fn after_text(self, text_at: usize) -> Self {
        Self { text_at, ..self }
    }
}
