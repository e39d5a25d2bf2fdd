//! Live deltas: shown to watchers as they come, and not stored.
//!
//! A watcher of one task is woken by that task alone. No publisher waits for a watcher: a slow one
//! misses deltas and is told so.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use antiphon_core::{EVENT_VERSION, Seq, StreamEvent, TaskId, ToolCallId};
use serde::Serialize;
use tokio::sync::{broadcast, mpsc};

/// Number of deltas that a slow watcher may be behind before it misses some.
const KEPT_MAX: usize = 4096;

/// Number of watched tasks at which those without watchers are dropped.
const TASKS_CLEANUP_AT: usize = 1024;

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

/// The watchers of deltas.
#[derive(Debug)]
pub(crate) struct Deltas {
    all: broadcast::Sender<Delta>,
    tasks: Mutex<Tasks>,
}

#[derive(Debug)]
struct Tasks {
    watchers: HashMap<TaskId, Vec<mpsc::Sender<Delta>>>,
    /// Number of watched tasks at which unwatched ones are dropped.
    cleanup_at: usize,
}

impl Deltas {
    pub(crate) fn new() -> Self {
        let tasks = Tasks { watchers: HashMap::new(), cleanup_at: TASKS_CLEANUP_AT };
        Self { all: broadcast::Sender::new(KEPT_MAX), tasks: Mutex::new(tasks) }
    }

    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Deltas of all tasks. A slow watcher misses some and gets an error that says how many.
    pub(crate) fn subscribe_all(&self) -> broadcast::Receiver<Delta> {
        self.all.subscribe()
    }

    /// Deltas of one task. A slow watcher gets what it has not read yet, and then the end.
    pub(crate) fn subscribe_task(&self, task_id: &TaskId) -> mpsc::Receiver<Delta> {
        let (watcher, deltas) = mpsc::channel(KEPT_MAX);
        let mut tasks = self.tasks();
        if tasks.watchers.len() >= tasks.cleanup_at {
            tasks.watchers.retain(|_, watchers| watchers.iter().any(|one| !one.is_closed()));
            tasks.cleanup_at = TASKS_CLEANUP_AT.max(2 * tasks.watchers.len());
        }
        tasks.watchers.entry(task_id.clone()).or_default().push(watcher);
        deltas
    }

    /// Publishes a delta.
    pub(crate) fn publish(&self, delta: Delta) {
        let mut tasks = self.tasks();
        if let Some(watchers) = tasks.watchers.get_mut(&delta.task_id) {
            watchers.retain(|watcher| watcher.try_send(delta.clone()).is_ok());
            if watchers.is_empty() {
                tasks.watchers.remove(&delta.task_id);
            }
        }
        drop(tasks);
        // There may be no watcher.
        let _ = self.all.send(delta);
    }
}
