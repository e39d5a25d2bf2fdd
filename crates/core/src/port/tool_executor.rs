//! The port to tools.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::port::Cancel;
use crate::{Effect, RawJson, TaskId, Tool, ToolCallId, ToolResult};

/// Runs tools.
#[async_trait]
pub trait ToolExecutor: Send + Sync {
    /// The tools it runs, in a stable order: the same list gives the same prompt. Names are
    /// unique, of letters, digits, `_` and `-`, 64 at most: providers refuse others.
    fn tools(&self) -> Vec<Tool>;

    /// What running `tool` does to the world; `None` if there is no such tool.
    fn effect(&self, tool: &str) -> Option<Effect>;

    /// Runs `tool` once. When `context.cancel` fires, everything the call started is gone
    /// before this returns [`ToolError::Canceled`]. If it has fired already, nothing is started.
    async fn execute(
        &self,
        tool: &str,
        arguments: &RawJson,
        context: ToolContext,
    ) -> Result<ToolResult, ToolError>;

    /// Nobody works on this task any more: whatever its calls left running is gone, and whatever
    /// they kept in memory is let go, before this returns. Called again, it does nothing.
    async fn release(&self, _task_id: &TaskId) {}
}

/// What a call is given beside its arguments.
#[derive(Debug)]
pub struct ToolContext {
    /// Whose call it is. What a call leaves running belongs to its task.
    pub task_id: TaskId,
    /// Which call.
    pub tool_call_id: ToolCallId,
    /// Fires when the call should stop.
    pub cancel: Cancel,
    /// Where to say what is going on.
    pub progress: Progress,
}

impl ToolContext {
    /// For a call that belongs to no task and is not listened to: a trial.
    pub fn trial(cancel: Cancel) -> Self {
        let nobody = uuid::Uuid::nil();
        Self {
            task_id: TaskId::from(nobody),
            tool_call_id: ToolCallId::from(nobody),
            cancel,
            progress: Progress::unheard(),
        }
    }
}

/// What a call says while it runs, for whoever watches. The model does not see it, and nothing
/// of it is kept.
#[derive(Clone)]
pub struct Progress(Arc<dyn Fn(&str) + Send + Sync>);

impl Progress {
    /// Tells `listener`, which must not block.
    pub fn to(listener: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(listener))
    }

    /// Tells nobody.
    pub fn unheard() -> Self {
        Self::to(|_| {})
    }

    /// Says something: the next piece of a call's output.
    pub fn say(&self, text: &str) {
        (self.0)(text);
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Progress").finish_non_exhaustive()
    }
}

/// Why a tool could not run. One that ran and failed is a [`ToolResult`] instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// Tell the model which tools there are.
    #[error("there is no tool `{name}`")]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// Tell the model what is wrong with its arguments.
    #[error("invalid arguments for `{tool}`: {reason}")]
    InvalidArguments {
        /// Which tool.
        tool: String,
        /// Which argument and why.
        reason: String,
    },
    /// It was asked to stop, and did.
    #[error("canceled")]
    Canceled,
    /// The machinery around the tool failed.
    #[error("`{tool}` could not be run: {reason}")]
    Unavailable {
        /// Which tool.
        tool: String,
        /// Why.
        reason: String,
    },
}
