//! The port to tools.

use async_trait::async_trait;

use crate::port::Cancel;
use crate::{Effect, RawJson, Tool, ToolResult};

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
}

/// What a call is given beside its arguments.
#[derive(Debug)]
pub struct ToolContext {
    /// Fires when the call should stop.
    pub cancel: Cancel,
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
