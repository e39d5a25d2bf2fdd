//! Tasks: one piece of work each, and what becomes of it.
//!
//! `completed`, `failed` and `canceled` are terminal: written once, never overwritten.

use std::num::{NonZeroU32, NonZeroU64};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Executor, TaskId};

/// How far a task got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Accepted, not begun.
    Pending,
    /// At work.
    Running,
    /// Waiting for somebody outside.
    InputRequired,
    /// Done.
    Completed,
    /// Given up.
    Failed,
    /// Called off.
    Canceled,
}

impl TaskStatus {
    /// Every one.
    pub const ALL: [Self; 6] = [
        Self::Pending,
        Self::Running,
        Self::InputRequired,
        Self::Completed,
        Self::Failed,
        Self::Canceled,
    ];

    /// The word used in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
        }
    }

    /// Whether nothing can follow.
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Completed | Self::Failed | Self::Canceled => true,
            Self::Pending | Self::Running | Self::InputRequired => false,
        }
    }

    /// Whether a task in this status may get that one. Nothing follows a terminal status, and
    /// nothing becomes pending again.
    pub fn may_become(self, next: Self) -> bool {
        !self.is_terminal() && next != Self::Pending
    }
}

/// How far a task may go, and everything it dispatches with it. What is absent is not limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskLimits {
    /// Answers of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns_max: Option<NonZeroU32>,
    /// Tokens of one answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_tokens_max: Option<NonZeroU32>,
    /// Calls of tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls_max: Option<NonZeroU32>,
    /// Tokens, read and written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_max: Option<NonZeroU64>,
    /// Money, in billionths of a US dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_nano_usd_max: Option<NonZeroU64>,
    /// Seconds from its creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_clock_s_max: Option<NonZeroU32>,
    /// Tasks below one another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth_max: Option<NonZeroU32>,
    /// Tasks that one task has dispatched and that have not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fan_out_max: Option<NonZeroU32>,
    /// Tasks in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks_max: Option<NonZeroU32>,
}

impl TaskLimits {
    /// Whether nothing is limited.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// What one agent delivered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentResult {
    /// Text, or something structured.
    pub content: Value,
    /// The task that produced it.
    pub task_id: TaskId,
    /// How it ended.
    pub status: TaskStatus,
}

/// What an invocation delivered; its shape mirrors the [`Join`](crate::Join).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum InvocationResult {
    /// `single`.
    Scalar {
        /// The result.
        result: AgentResult,
    },
    /// `all`: in the order of the targets, each with its own status.
    Vector {
        /// The results.
        results: Vec<AgentResult>,
    },
    /// `detached`: in the order of the targets.
    TaskIds {
        /// The tasks.
        task_ids: Vec<TaskId>,
    },
}

/// A look at one task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskSnapshot {
    /// Which.
    pub task_id: TaskId,
    /// Who works on it.
    pub agent_id: String,
    /// How far it got.
    pub status: TaskStatus,
    /// Who runs it.
    pub executor: Executor,
    /// When it began, in milliseconds since 1970.
    pub started_at: i64,
    /// When something last happened, in milliseconds since 1970.
    pub last_event_at: i64,
    /// When it ended, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<i64>,
    /// The last it said, or its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
}
