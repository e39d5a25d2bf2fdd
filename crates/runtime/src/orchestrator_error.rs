//! Why the orchestrator refused or could not do something. Each variant calls for one reaction.

use antiphon_core::port::JournalError;
use antiphon_core::{ApprovalId, ApprovalStatus, SessionId, TaskId, TaskStatus, ToolCallId};

use crate::budget::spend_limits::BudgetSpent;
use crate::inbox::quotas::INBOX_OF_SENDER_MAX;
use crate::task::limits::LimitReached;
use crate::task::state::ReplayError;

/// Why the orchestrator refused or could not do something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OrchestratorError {
    /// The journal refused or failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The task cannot be rebuilt from the journal.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The inbox of the task is full: retry when it has read some messages.
    #[error(
        "{INBOX_OF_SENDER_MAX} messages are queued for task {task_id}: retry when it has read some"
    )]
    InboxFull {
        /// Id of the task.
        task_id: TaskId,
    },
    /// Set the API key of the provider, or configure the provider.
    #[error("the model of task {task_id} is not available: {reason}")]
    NoModel {
        /// Id of the task.
        task_id: TaskId,
        /// What is missing, for the user.
        reason: String,
    },
    /// The task reached a limit, or a limit cannot be checked: change the limit or the task.
    #[error(transparent)]
    Limit(#[from] LimitReached),
    /// The spend limit is reached: wait for the next day or month, or raise it.
    #[error(transparent)]
    Budget(#[from] BudgetSpent),
    /// The request to raise a spend limit is invalid.
    #[error("the spend limit was not raised: {reason}")]
    RaiseRefused {
        /// What is wrong with it.
        reason: String,
    },
    /// The output schema is not a JSON Schema.
    #[error("the output schema is invalid: {reason}")]
    BadSchema {
        /// What is wrong with it.
        reason: String,
    },
    /// The task has not ended and does not run: resume it.
    #[error("task {task_id} has not ended and is not running: resume it")]
    NotRunning {
        /// Id of the task.
        task_id: TaskId,
    },
    /// The session exists: fork it, or import under another id.
    #[error("session {session_id} already exists: fork it, or give the file another `id`")]
    SessionExists {
        /// Id of the session.
        session_id: SessionId,
    },
    /// The task has ended: nothing can be changed any more.
    #[error("task {task_id} has ended already: {}", status.as_str())]
    Ended {
        /// Id of the task.
        task_id: TaskId,
        /// Its terminal status.
        status: TaskStatus,
    },
    /// No approval has this id: list the approvals.
    #[error("there is no approval {approval_id}")]
    NoApproval {
        /// Id that was looked up.
        approval_id: ApprovalId,
    },
    /// The approval was answered before. The first answer counts.
    #[error("approval {approval_id} is already decided: {}", status.as_str())]
    AlreadyDecided {
        /// Id of the approval.
        approval_id: ApprovalId,
        /// How it was decided.
        status: ApprovalStatus,
    },
    /// The rule of a lasting permission could not be stored: fix the cause, or allow the call once.
    #[error("the rule could not be saved: {reason}")]
    RuleNotSaved {
        /// Why it could not be stored.
        reason: String,
    },
    /// The decision does not fit the question: give another answer.
    #[error("approval {approval_id}: {reason}")]
    NotAnAnswer {
        /// Id of the approval.
        approval_id: ApprovalId,
        /// What does not fit.
        reason: String,
    },
    /// A task in this runner cannot plan first: start it without a plan, or with mode `read-only`.
    #[error(
        "a task in the runner `{runner}` cannot plan first, because nothing there keeps it from writing: start it without a plan"
    )]
    CannotPlan {
        /// Kind of the runner.
        runner: String,
    },
    /// The task does not wait for the result of this call.
    #[error("task {task_id} does not wait for a result of call {tool_call_id}")]
    NoSuchCall {
        /// Id of the task.
        task_id: TaskId,
        /// Id of the call.
        tool_call_id: ToolCallId,
    },
    /// The result of a client's tool is too long.
    #[error("a result may have {max} bytes, this one has {bytes}")]
    ResultTooLong {
        /// Allowed number of bytes.
        max: usize,
        /// Its number of bytes.
        bytes: usize,
    },
    /// The agent cannot be started or stopped.
    #[error("`{agent}` cannot be started: {reason}")]
    CannotStart {
        /// Name of the agent.
        agent: String,
        /// Why not.
        reason: String,
    },
    /// A client's tool cannot be offered: rename it, or offer it once.
    #[error("the tool `{tool}` cannot be offered: {reason}")]
    BadTool {
        /// Name of the tool.
        tool: String,
        /// Why not.
        reason: String,
    },
    /// The peer that runs the task did not get the message: send it again.
    #[error(
        "the message did not reach task {task_id} on the peer `{peer}`: {reason}; send it again later"
    )]
    PeerUnavailable {
        /// Id of the task.
        task_id: TaskId,
        /// Name of the peer.
        peer: String,
        /// Why not.
        reason: String,
    },
    /// The peer that runs the task refused the message.
    #[error("the peer `{peer}` refused the message to task {task_id}: {reason}")]
    PeerRefused {
        /// Id of the task.
        task_id: TaskId,
        /// Name of the peer.
        peer: String,
        /// Why.
        reason: String,
    },
    /// The process is stopping: retry when it runs again.
    #[error("the server is stopping and accepts no new work: retry when it runs again")]
    Stopping,
    /// A panic stopped the task: resume the task and report the bug.
    #[error("task {task_id} was stopped by a bug in the program")]
    Panicked {
        /// Id of the task.
        task_id: TaskId,
    },
    /// The task hung and was stopped: resume it.
    #[error("task {task_id} stopped responding")]
    Unresponsive {
        /// Id of the task.
        task_id: TaskId,
    },
}
