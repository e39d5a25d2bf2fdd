//! How far a task may go.

use antiphon_core::TokenUsage;
use serde::Serialize;

use crate::state::TaskState;

/// A limit that was reached, and what it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "limit", rename_all = "snake_case")]
pub enum LimitReached {
    /// Too many answers of the model.
    #[error("the task may take {max} turns, and has")]
    Turns {
        /// How many it may.
        max: u32,
    },
    /// Too many calls of tools.
    #[error("the task may call {max} tools, and has")]
    ToolCalls {
        /// How many it may.
        max: u32,
    },
    /// Too many tokens.
    #[error("the task may use {max} tokens, and has")]
    Tokens {
        /// How many it may.
        max: u64,
    },
}

/// The limit that keeps a task from asking its model again.
pub(crate) fn reached(state: &TaskState) -> Option<LimitReached> {
    let limits = state.created.limits;
    let tokens = || u64::from(TokenUsage::from(state.usage).total_tokens);
    if let Some(max) = limits.turns_max.filter(|max| state.turns >= max.get()) {
        return Some(LimitReached::Turns { max: max.get() });
    }
    if let Some(max) = limits.tool_calls_max.filter(|max| state.calls >= max.get()) {
        return Some(LimitReached::ToolCalls { max: max.get() });
    }
    let max = limits.tokens_max.filter(|max| tokens() >= max.get())?;
    Some(LimitReached::Tokens { max: max.get() })
}
