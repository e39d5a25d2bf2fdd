//! Tasks: pieces of work, with status, limits and results.
//!
//! `completed`, `failed` and `canceled` are terminal: recorded once, never overwritten.
//!
//! | file         | subject                                |
//! |--------------|----------------------------------------|
//! | `invocation` | how tasks are dispatched               |
//! | `approval`   | questions to a person about tool calls |
//! | `question`   | other questions to a person, and answers |
//! | `plan`       | plan mode                              |
//! | `todo`       | the list of things to do of an agent   |
//! | `runs_on`    | where a task runs                      |

pub(crate) mod approval;
pub(crate) mod invocation;
pub(crate) mod plan;
pub(crate) mod question;
pub(crate) mod runs_on;
pub(crate) mod todo;

use std::num::{NonZeroU32, NonZeroU64};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Executor, TaskId};

/// Status of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Accepted, not started.
    Pending,
    /// Running.
    Running,
    /// Suspended until a person or a client acts.
    InputRequired,
    /// Completed; there is a result.
    Completed,
    /// Failed, with a reason.
    Failed,
    /// Canceled.
    Canceled,
}

impl TaskStatus {
    /// Every status.
    pub const ALL: [Self; 6] = [
        Self::Pending,
        Self::Running,
        Self::InputRequired,
        Self::Completed,
        Self::Failed,
        Self::Canceled,
    ];

    /// The word in JSON.
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

    /// Whether the status is the last one.
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Completed | Self::Failed | Self::Canceled => true,
            Self::Pending | Self::Running | Self::InputRequired => false,
        }
    }

    /// Whether a task in this status may change to `next`. No status follows a terminal one, and
    /// no task becomes pending again.
    pub fn may_become(self, next: Self) -> bool {
        !self.is_terminal() && next != Self::Pending
    }
}

/// Limits of a task and of every task below it. An absent limit does not limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskLimits {
    /// Most model answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns_max: Option<NonZeroU32>,
    /// Most tokens of one answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_tokens_max: Option<NonZeroU32>,
    /// Most tool calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls_max: Option<NonZeroU32>,
    /// Most tokens, read and written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_max: Option<NonZeroU64>,
    /// Highest cost, in billionths of a US dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_nano_usd_max: Option<NonZeroU64>,
    /// Most seconds since creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_clock_s_max: Option<NonZeroU32>,
    /// Most levels of tasks below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth_max: Option<NonZeroU32>,
    /// Most tasks dispatched by one task that have not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fan_out_max: Option<NonZeroU32>,
    /// Most tasks in the tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks_max: Option<NonZeroU32>,
}

impl TaskLimits {
    /// Whether there is no limit.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Result of one agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentResult {
    /// The result: text, or a JSON value.
    pub content: Value,
    /// Id of the task that produced it.
    pub task_id: TaskId,
    /// Terminal status of the task.
    pub status: TaskStatus,
}

/// Result of an invocation; its form follows the [`Join`](crate::Join).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum InvocationResult {
    /// Result of `single`.
    Scalar {
        /// What became of the only target.
        result: AgentResult,
    },
    /// Results of `all`, in the order of the targets, each with its own status.
    Vector {
        /// What became of each target, in the order of the invocation.
        results: Vec<AgentResult>,
    },
    /// Task ids of `detached`, in the order of the targets.
    TaskIds {
        /// Ids of the tasks, in the order of the targets: read their results later.
        task_ids: Vec<TaskId>,
    },
}

/// Snapshot of one task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskSnapshot {
    /// Id of the task.
    pub task_id: TaskId,
    /// Name of the agent that works on the task.
    pub agent_id: String,
    /// Status of the task.
    pub status: TaskStatus,
    /// Orchestrator or runner that runs the task.
    pub executor: Executor,
    /// Time of creation, in milliseconds since 1970.
    pub started_at: i64,
    /// Time of the last event, in milliseconds since 1970.
    pub last_event_at: i64,
    /// Time of the terminal status, in milliseconds since 1970. Absent before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<i64>,
    /// The last text of the model, or the result. Absent before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
}
