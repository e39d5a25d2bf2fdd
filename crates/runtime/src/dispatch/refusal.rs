//! Why an agent was not dispatched, in a form that the agent who asked can read.

use antiphon_core::{InvocationError, ToolResult};
use serde::Serialize;
use serde_json::{Value, json};

use crate::inbox::arrival::Rejection;
use crate::task::limits::LimitReached;

/// Why an agent was not dispatched. Nothing has happened then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The invocation makes no sense.
    #[error(transparent)]
    Invocation(#[from] InvocationError),
    /// The arguments of the call make no sense.
    #[error("{reason}")]
    Arguments {
        /// Which and why.
        reason: String,
    },
    /// Nobody has that name.
    #[error("there is no agent `{agent}`, only these: {}", list(known))]
    UnknownAgent {
        /// Who was asked for.
        agent: String,
        /// Who there is.
        known: Vec<String>,
    },
    /// The caller may not call it.
    #[error("you may not call {agent}, only these: {}", list(allowed))]
    MayNotCall {
        /// Who was asked for.
        agent: String,
        /// Whom it may call.
        allowed: Vec<String>,
    },
    /// What was sent is in nobody's inbox.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// Wait for some of them to be answered.
    #[error("{max} of your requests have no answer yet: wait for some of them")]
    Requests {
        /// How many there may be.
        max: usize,
    },
    /// Two agents keep each other busy.
    #[error(
        "agents have written to each other {max} times, and nobody else has: end your turn and wait \
         for something new"
    )]
    Hops {
        /// How often they may.
        max: u32,
    },
    /// The caller cannot lend what it does not have.
    #[error("you have no tool `{tool}` to lend, only these: {}", list(known))]
    UnknownTool {
        /// Which.
        tool: String,
        /// What it has.
        known: Vec<String>,
    },
    /// Nothing fits what the agent, the caller and this place can do.
    #[error("nobody can run {agent}: {reason}")]
    NoExecutor {
        /// Who.
        agent: String,
        /// What was tried and why it does not do.
        reason: String,
    },
    /// A model that cannot be asked.
    #[error("{agent} has no model to ask: {reason}")]
    NoModel {
        /// Who.
        agent: String,
        /// Why.
        reason: String,
    },
    /// Its schema is none.
    #[error("the schema of the result is none: {reason}")]
    BadSchema {
        /// Why.
        reason: String,
    },
    /// A handover beside other calls.
    #[error("a handover ends your part: make it the only call of your message")]
    NotAlone,
    /// A limit of the task or of one above it.
    #[error(transparent)]
    Limit(#[from] LimitReached),
    /// The task is not below the caller.
    #[error("you have dispatched no task {task_id}: `list_my_tasks` shows those you have")]
    NotYours {
        /// Which.
        task_id: String,
    },
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "nobody".to_owned() } else { names.join(", ") }
}

impl Refusal {
    /// The word for it.
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
            Self::UnknownTool { .. } => "unknown_tool",
            Self::NoExecutor { .. } => "no_executor",
            Self::NoModel { .. } => "no_model",
            Self::BadSchema { .. } => "bad_schema",
            Self::NotAlone => "not_alone",
            Self::Limit(_) => "limit_reached",
            Self::NotYours { .. } => "not_yours",
            Self::Rejected(_) => "rejected",
            Self::Requests { .. } => "too_many_requests",
            Self::Hops { .. } => "too_many_hops",
        }
    }

    /// What the agent who asked reads.
    pub(crate) fn result(&self) -> ToolResult {
        let limit = match self {
            Self::Limit(limit) => json!(limit),
            Self::Invocation(_)
            | Self::Arguments { .. }
            | Self::UnknownAgent { .. }
            | Self::MayNotCall { .. }
            | Self::UnknownTool { .. }
            | Self::NoExecutor { .. }
            | Self::NoModel { .. }
            | Self::BadSchema { .. }
            | Self::NotAlone
            | Self::Rejected(_)
            | Self::Requests { .. }
            | Self::Hops { .. }
            | Self::NotYours { .. } => Value::Null,
        };
        let told = SerializedEvent { error: self.code(), message: self.to_string(), limit };
        ToolResult::failed(json!(told).to_string())
    }
}

#[derive(Serialize)]
struct SerializedEvent {
    error: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Value::is_null")]
    limit: Value,
}
