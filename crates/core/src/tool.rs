//! Tools: what a model may ask for. A tool is data; a [`ToolExecutor`](crate::ToolExecutor)
//! runs it.

use serde::{Deserialize, Serialize};

use crate::{InputBlock, RawJson};

/// A tool as the model is told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tool {
    /// What the model calls it.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: RawJson,
}

/// What running a tool does to the world. Recovery and parallelism follow from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Changes nothing: may run beside others, and again after a crash.
    ReadOnly,
    /// Changes something, but twice is the same as once: may run again after a crash.
    Idempotent,
    /// Changes something each time: cut off by a crash, its outcome is unknown and it is not
    /// run again.
    SideEffect,
}

impl Effect {
    /// Whether a call that was cut off by a crash is run again.
    pub fn may_run_again(self) -> bool {
        match self {
            Self::ReadOnly | Self::Idempotent => true,
            Self::SideEffect => false,
        }
    }
}

/// What came of a tool that ran. `is_error` says that it ran and failed, which the model gets
/// to read; a tool that could not run at all is a [`ToolError`](crate::ToolError) instead.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// What the model gets to see.
    pub content: Vec<InputBlock>,
    /// It ran and failed.
    pub is_error: bool,
}

impl ToolResult {
    /// A success of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![InputBlock::text(text)], is_error: false }
    }

    /// A failure of one text.
    pub fn failed(text: impl Into<String>) -> Self {
        Self { content: vec![InputBlock::text(text)], is_error: true }
    }
}
