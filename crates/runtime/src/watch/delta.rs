//! What is shown as it comes and not kept.
//!
//! Whoever watches one task is told of that one alone, so that many who watch do not wake each other.
//! Nobody who shows something waits for those who watch: one that is too slow misses some, and is told.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use antiphon_core::{EVENT_VERSION, StreamEvent, TaskId, ToolCallId};
use serde::Serialize;
use tokio::sync::{broadcast, mpsc};

/// Deltas that a slow watcher may be behind before it misses some.
const KEPT_MAX: usize = 4096;

/// Tasks with watchers of their own before it is looked which of them have gone.
const TASKS_SWEPT: usize = 1024;

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

/// Who is shown deltas.
#[derive(Debug)]
pub(crate) struct Deltas {
    all: broadcast::Sender<Delta>,
    tasks: Mutex<Tasks>,
}

#[derive(Debug)]
struct Tasks {
    watchers: HashMap<TaskId, Vec<mpsc::Sender<Delta>>>,
    /// How many there may be before it is looked which have gone.
    swept_at: usize,
}

impl Deltas {
    pub(crate) fn new() -> Self {
        let tasks = Tasks { watchers: HashMap::new(), swept_at: TASKS_SWEPT };
        Self { all: broadcast::Sender::new(KEPT_MAX), tasks: Mutex::new(tasks) }
    }

    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those of all tasks. A watcher that is too slow misses some and is told.
    pub(crate) fn all(&self) -> broadcast::Receiver<Delta> {
        self.all.subscribe()
    }

    /// Those of one task. A watcher that is too slow gets what it has not taken yet, and then no more.
    pub(crate) fn of(&self, task_id: &TaskId) -> mpsc::Receiver<Delta> {
        let (watcher, deltas) = mpsc::channel(KEPT_MAX);
        let mut tasks = self.tasks();
        if tasks.watchers.len() >= tasks.swept_at {
            tasks.watchers.retain(|_, watchers| watchers.iter().any(|one| !one.is_closed()));
            tasks.swept_at = TASKS_SWEPT.max(2 * tasks.watchers.len());
        }
        tasks.watchers.entry(task_id.clone()).or_default().push(watcher);
        deltas
    }

    /// Shows one to whoever watches.
    pub(crate) fn show(&self, delta: Delta) {
        let mut tasks = self.tasks();
        if let Some(watchers) = tasks.watchers.get_mut(&delta.task_id) {
            watchers.retain(|watcher| watcher.try_send(delta.clone()).is_ok());
            if watchers.is_empty() {
                tasks.watchers.remove(&delta.task_id);
            }
        }
        drop(tasks);
        // Nobody may be watching.
        let _ = self.all.send(delta);
    }
}
