//! Tools that a model may call. A tool is data; a [`ToolExecutor`](crate::ToolExecutor)
//! runs it.

use serde::{Deserialize, Serialize};

use crate::{InputBlock, RawJson};

/// Name of the tool that returns the text of a skill. A task that may call it may also run skills in a child.
pub const SKILL: &str = "skill";

/// A tool, as described to the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tool {
    /// Name of the tool: letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// What the tool does and when to use it.
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: RawJson,
}

/// When a model is offered a tool. A call of one that was not offered runs all the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Offer {
    /// In every request.
    #[default]
    Always,
    /// Where a person can be asked to allow its calls.
    WhereAsked,
    /// Behind all other tools: an earlier call of the task has made it useful. A provider's cache of the tools
    /// before it stays valid.
    Last,
    /// Not in this request: it could do nothing.
    NotYet,
}

/// Side effects of a tool. Recovery and parallelism depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// No side effects: may run in parallel, and again after a crash.
    ReadOnly,
    /// Side effects that are the same once or twice: may run again after a crash.
    Idempotent,
    /// Side effects each time: after a crash the outcome of an interrupted call is unknown, and it does
    /// not run again.
    SideEffect,
}

impl Effect {
    /// Whether a call that a crash interrupted runs again.
    pub fn may_run_again(self) -> bool {
        match self {
            Self::ReadOnly | Self::Idempotent => true,
            Self::SideEffect => false,
        }
    }
}

/// Result of a tool that ran. `is_error` means that it ran and failed, which the model
/// reads; a tool that could not run at all is a [`ToolError`](crate::ToolError) instead.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// Content that the model reads.
    pub content: Vec<InputBlock>,
    /// Whether the tool failed.
    pub is_error: bool,
}

impl ToolResult {
    /// A success with one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![InputBlock::text(text)], is_error: false }
    }

    /// A failure with one text.
    pub fn failed(text: impl Into<String>) -> Self {
        Self { content: vec![InputBlock::text(text)], is_error: true }
    }
}
