//! Why the orchestrator did not do as told. Each variant is something to do next.

use antiphon_core::port::JournalError;
use antiphon_core::{ApprovalId, ApprovalStatus, SessionId, TaskId, TaskStatus, ToolCallId};

use crate::budget::spend_limits::BudgetSpent;
use crate::inbox::quotas::INBOX_OF_SENDER_MAX;
use crate::task::limits::LimitReached;
use crate::task::state::ReplayError;

/// Why the orchestrator did not do as told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OrchestratorError {
    /// See there.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// See there.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// Wait for the task to take some of them.
    #[error("{INBOX_OF_SENDER_MAX} messages wait in task {task_id}: let it take some of them")]
    MailboxFull {
        /// Which.
        task_id: TaskId,
    },
    /// Set its key, or configure its provider.
    #[error("the model of task {task_id} cannot be asked: {reason}")]
    NoModel {
        /// Which.
        task_id: TaskId,
        /// Why.
        reason: String,
    },
    /// Change the limit, or what makes it impossible.
    #[error(transparent)]
    Limit(#[from] LimitReached),
    /// Wait, or let somebody allow more.
    #[error(transparent)]
    Budget(#[from] BudgetSpent),
    /// Ask for something that can be allowed.
    #[error("nothing was allowed: {reason}")]
    NoAllowance {
        /// Why.
        reason: String,
    },
    /// Give a schema that is one.
    #[error("the schema of the result is none: {reason}")]
    BadSchema {
        /// Why.
        reason: String,
    },
    /// Go on with it.
    #[error("task {task_id} has not ended, and nobody works on it")]
    AtRest {
        /// Which.
        task_id: TaskId,
    },
    /// Fork it, or give what is brought another id.
    #[error(
        "there is a session {session_id} already: fork that one, or give the file another `id`"
    )]
    SessionThere {
        /// Which.
        session_id: SessionId,
    },
    /// It is over.
    #[error("task {task_id} has ended already: {}", status.as_str())]
    Ended {
        /// Which.
        task_id: TaskId,
        /// How.
        status: TaskStatus,
    },
    /// Look at the list of approvals.
    #[error("there is no approval {approval_id}")]
    NoApproval {
        /// Which.
        approval_id: ApprovalId,
    },
    /// Somebody was faster.
    #[error("approval {approval_id} has been answered: {}", status.as_str())]
    Decided {
        /// Which.
        approval_id: ApprovalId,
        /// How.
        status: ApprovalStatus,
    },
    /// See what to do about it, or allow the call once.
    #[error("the rule could not be kept: {reason}")]
    NotRemembered {
        /// Why.
        reason: String,
    },
    /// Look at what the task asks its client.
    #[error("task {task_id} asks for no result of a call {tool_call_id}")]
    NoSuchCall {
        /// Which.
        task_id: TaskId,
        /// Which call.
        tool_call_id: ToolCallId,
    },
    /// Send less.
    #[error("a result may have {max} bytes, this one has {bytes}")]
    ResultTooLong {
        /// How many it may.
        max: usize,
        /// How many it has.
        bytes: usize,
    },
    /// See why.
    #[error("`{agent}` cannot be started: {reason}")]
    CannotStart {
        /// Who.
        agent: String,
        /// Why.
        reason: String,
    },
    /// Offer it under another name, or once.
    #[error("the tool `{tool}` cannot be offered: {reason}")]
    BadTool {
        /// Which.
        tool: String,
        /// Why.
        reason: String,
    },
    /// A fault of ours. Resume it, and report it.
    #[error("task {task_id} was stopped by a fault in the program")]
    Fault {
        /// Which.
        task_id: TaskId,
    },
    /// Resume it.
    #[error("task {task_id} gave no sign of life")]
    Silent {
        /// Which.
        task_id: TaskId,
    },
}
