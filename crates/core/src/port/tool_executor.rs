//! The port to tools.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use uuid::Uuid;

use crate::port::{Cancel, Rule};
use crate::{Effect, Offer, RawJson, TaskId, Tool, ToolCallId, ToolResult};

/// Longest [note](ToolExecutor::start_note) of a call, in bytes of JSON. A longer one is not recorded.
pub const START_NOTE_BYTES_MAX: usize = 1024;

/// Runs tools.
#[async_trait]
pub trait ToolExecutor: Send + Sync {
    /// The tools, in a stable order: the same list gives the same prompt. Names are
    /// unique, of letters, digits, `_` and `-`, at most 64: providers refuse others.
    fn tools(&self) -> Vec<Arc<Tool>>;

    /// Side effects of `tool`; `None` if there is no such tool.
    fn effect(&self, tool: &str) -> Option<Effect>;

    /// When the model of a task is offered `tool`. Asked before each request: once it is offered to a task, it stays.
    fn offer(&self, _tool: &str, _task_id: &TaskId) -> Offer {
        Offer::Always
    }

    /// What is recorded with the start of a call, so that a later process can
    /// [inspect](ToolExecutor::inspect_cut_off) whether it happened. Called before the start is recorded; has no
    /// effect. A JSON value of at most [`START_NOTE_BYTES_MAX`]; `None` when there is nothing to note.
    async fn start_note(
        &self,
        _tool: &str,
        _arguments: &RawJson,
        _task_id: &TaskId,
    ) -> Option<Value> {
        None
    }

    /// Runs `tool` once. When `context.cancel` fires, everything the call started has ended
    /// before this returns [`ToolError::Canceled`]. If it has fired already, nothing is started.
    async fn execute(
        &self,
        tool: &str,
        arguments: &RawJson,
        context: ToolContext,
    ) -> Result<ToolResult, ToolError>;

    /// Looks whether a call happened that was started and has no recorded result, because its process
    /// ended. Changes nothing in the world.
    async fn inspect_cut_off(
        &self,
        _tool: &str,
        _arguments: &RawJson,
        _call: &CutOffCall,
    ) -> CutOffOutcome {
        CutOffOutcome::Unknown { known: String::new() }
    }

    /// The result of a call is recorded: what was kept for an [inspection](ToolExecutor::inspect_cut_off) can go. The same
    /// call may be settled several times, also by a later process.
    async fn settled(&self, _tool: &str, _task_id: &TaskId, _call_uuid: Uuid) {}

    /// Ends everything that calls of this task left running, and frees what they kept in memory, before
    /// this returns. Calling it again does nothing.
    async fn release(&self, _task_id: &TaskId) {}
}

/// Context of a call.
#[derive(Debug)]
pub struct ToolContext {
    /// Id of the task. What a call leaves running belongs to its task.
    pub task_id: TaskId,
    /// Id of the call.
    pub tool_call_id: ToolCallId,
    /// Name of the agent that calls.
    pub agent: String,
    /// Another id of the call: the same in every process, and no other call has it. Some models use
    /// a `tool_call_id` again.
    pub call_uuid: Uuid,
    /// The [note](ToolExecutor::start_note) that was recorded with the start.
    pub note: Option<Value>,
    /// Fires when the call should stop.
    pub cancel: Cancel,
    /// Where to report progress.
    pub progress: Progress,
    /// Rules that a person granted to the task.
    pub granted: Vec<Rule>,
}

impl ToolContext {
    /// A context without a task and without progress, for a trial.
    pub fn trial(cancel: Cancel) -> Self {
        let nil = Uuid::nil();
        Self {
            task_id: TaskId::from(nil),
            tool_call_id: ToolCallId::from(nil),
            agent: String::new(),
            call_uuid: Uuid::new_v4(),
            note: None,
            cancel,
            progress: Progress::discarded(),
            granted: Vec::new(),
        }
    }
}

/// A call whose process ended before its result was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutOffCall {
    /// Id of the task.
    pub task_id: TaskId,
    /// The same id that the call had in [`ToolContext::call_uuid`].
    pub call_uuid: Uuid,
    /// The [note](ToolExecutor::start_note) that was recorded with the start.
    pub note: Option<Value>,
}

/// What became of a call that was cut off.
#[derive(Debug, Clone, PartialEq)]
pub enum CutOffOutcome {
    /// It happened, with this result.
    Happened(ToolResult),
    /// It did not happen, or does no harm when it happens twice: it may run.
    MayRun,
    /// It may or may not have happened.
    Unknown {
        /// What is known, for the model. May be empty.
        known: String,
    },
}

/// Reports the progress of a call to watchers. The model does not see it, and the journal does not
/// keep it.
#[derive(Clone)]
pub struct Progress(Arc<dyn Fn(&str) + Send + Sync>);

impl Progress {
    /// Reports to `listener`, which must not block.
    pub fn to(listener: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(listener))
    }

    /// Drops every report.
    pub fn discarded() -> Self {
        Self::to(|_| {})
    }

    /// Reports the next piece of a call's output.
    pub fn say(&self, text: &str) {
        (self.0)(text);
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Progress").finish_non_exhaustive()
    }
}

/// Why a tool could not run. A tool that ran and failed is a [`ToolResult`] instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// There is no such tool: the model reads which tools there are.
    #[error("there is no tool `{name}`")]
    Unknown {
        /// Name in the call.
        name: String,
    },
    /// The arguments are invalid: the model reads what is wrong with them.
    #[error("invalid arguments for `{tool}`: {reason}")]
    InvalidArguments {
        /// Name of the tool.
        tool: String,
        /// Which argument is wrong, and why.
        reason: String,
    },
    /// The call was canceled.
    #[error("canceled")]
    Canceled,
    /// The environment of the tool failed.
    #[error("`{tool}` could not be run: {reason}")]
    Unavailable {
        /// Name of the tool.
        tool: String,
        /// Cause, and what to do about it.
        reason: String,
    },
}
