//! Why an agent was not dispatched, as a result that the calling agent can read.

use antiphon_core::{InvocationError, ToolResult};
use serde::Serialize;
use serde_json::{Value, json};

use crate::inbox::arrival::Rejection;
use crate::task::limits::LimitReached;

/// Why an agent was not dispatched. Nothing was recorded or started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DispatchRefusal {
    /// The invocation is invalid.
    #[error(transparent)]
    Invocation(#[from] InvocationError),
    /// The arguments of the call are invalid.
    #[error("{reason}")]
    Arguments {
        /// Which argument, and why.
        reason: String,
    },
    /// No agent has this name.
    #[error("there is no agent `{agent}`; available: {}", list(known))]
    UnknownAgent {
        /// The name in the call.
        agent: String,
        /// Names of defined agents, the first of many.
        known: Vec<String>,
    },
    /// The caller may not call this agent.
    #[error("you may not call {agent}; allowed: {}", list(allowed))]
    MayNotCall {
        /// The agent in the call, quoted.
        agent: String,
        /// Names of the agents it may call.
        allowed: Vec<String>,
    },
    /// The inbox of the receiver rejected the interaction.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// Too many open requests.
    #[error("{max} of your requests have no answer yet: wait for some of them")]
    Requests {
        /// Allowed number of open requests.
        max: usize,
    },
    /// Agents keep each other busy without any new input.
    #[error(
        "agents have sent each other {max} messages without new input: end your turn and wait for \
         something new"
    )]
    Hops {
        /// Allowed number of consecutive messages.
        max: u32,
    },
    /// The wait would never end: the other waits for the caller.
    #[error(
        "you would wait for each other: {}. Answer the request that you have first, or do not wait \
         (`wait`: false)",
        cycle(path)
    )]
    WaitCycle {
        /// The agents of the cycle, from the caller to the caller.
        path: Vec<String>,
    },
    /// The call lends a tool that the caller does not have.
    #[error("you have no tool `{tool}` to lend; available: {}", list(known))]
    UnknownTool {
        /// Name of the tool.
        tool: String,
        /// Names of the caller's tools.
        known: Vec<String>,
    },
    /// The call names a tool that does not exist.
    #[error("`tools`: there is no tool `{tool}`; available: {}", list(known))]
    NoSuchTool {
        /// Name of the tool.
        tool: String,
        /// Names of the tools that exist.
        known: Vec<String>,
    },
    /// No runner fits the agent, the caller and this process.
    #[error("{agent} cannot run: {reason}")]
    NoExecutor {
        /// The agent, quoted.
        agent: String,
        /// Which runners were tried, and why none fits.
        reason: String,
    },
    /// The model of the agent is not available.
    #[error("the model of {agent} is not available: {reason}")]
    NoModel {
        /// The agent, quoted.
        agent: String,
        /// What is missing.
        reason: String,
    },
    /// The output schema is not a JSON Schema.
    #[error("the output schema is invalid: {reason}")]
    BadSchema {
        /// What is wrong with it.
        reason: String,
    },
    /// A handover next to other calls.
    #[error("a handover ends your part: make it the only call of your message")]
    NotAlone,
    /// A limit of the task or of an ancestor.
    #[error(transparent)]
    Limit(#[from] LimitReached),
    /// The task is not a descendant of the caller.
    #[error("you have dispatched no task {task_id}: `list_my_tasks` shows your tasks")]
    NotYours {
        /// Id in the call.
        task_id: String,
    },
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn cycle(path: &[String]) -> String {
    path.join(" waits for ")
}

impl DispatchRefusal {
    /// Stable code of the refusal.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Invocation(error) => match error {
                InvocationError::NoTargets => "no_targets",
                InvocationError::SingleNeedsOneTarget { .. } => "single_needs_one_target",
                InvocationError::AdHocEmptyPrompt => "ad_hoc_empty_prompt",
                InvocationError::NamedEmptyAgentId => "named_empty_agent_id",
                InvocationError::TooManyTargets { .. } => "too_many_targets",
                InvocationError::QuorumNeedsTargets { .. } => "quorum_needs_targets",
                InvocationError::SharedNeedsSingle { .. } => "shared_needs_single",
                InvocationError::SharedNeedsLocal => "shared_needs_local",
            },
            Self::Arguments { .. } => "invalid_arguments",
            Self::UnknownAgent { .. } => "unknown_agent",
            Self::MayNotCall { .. } => "may_not_call",
            Self::UnknownTool { .. } | Self::NoSuchTool { .. } => "unknown_tool",
            Self::NoExecutor { .. } => "no_executor",
            Self::NoModel { .. } => "no_model",
            Self::BadSchema { .. } => "bad_schema",
            Self::NotAlone => "not_alone",
            Self::Limit(_) => "limit_reached",
            Self::NotYours { .. } => "not_yours",
            Self::Rejected(_) => "rejected",
            Self::Requests { .. } => "too_many_requests",
            Self::Hops { .. } => "too_many_hops",
            Self::WaitCycle { .. } => "wait_cycle",
        }
    }

    /// The tool result that the calling agent reads.
    pub(crate) fn result(&self) -> ToolResult {
        let limit = match self {
            Self::Limit(limit) => json!(limit),
            Self::Invocation(_)
            | Self::Arguments { .. }
            | Self::UnknownAgent { .. }
            | Self::MayNotCall { .. }
            | Self::UnknownTool { .. }
            | Self::NoSuchTool { .. }
            | Self::NoExecutor { .. }
            | Self::NoModel { .. }
            | Self::BadSchema { .. }
            | Self::NotAlone
            | Self::Rejected(_)
            | Self::Requests { .. }
            | Self::Hops { .. }
            | Self::WaitCycle { .. }
            | Self::NotYours { .. } => Value::Null,
        };
        let body = RefusalBody { error: self.code(), message: self.to_string(), limit };
        ToolResult::failed(json!(body).to_string())
    }
}

#[derive(Serialize)]
struct RefusalBody {
    error: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Value::is_null")]
    limit: Value,
}
