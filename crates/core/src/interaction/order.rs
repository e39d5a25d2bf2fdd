//! Orders of control requests, and the results of their execution.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::control_request::Command;
use super::{HandlingMode, InteractionContent, ResponseStatus, Salience, Wake};
use crate::{AgentName, InteractionId, TaskId};

/// What a request asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Order {
    /// Start an agent, stop it, or replace its context.
    Control(Command),
    /// Send an interaction to an agent's inbox.
    Send {
        /// Name of the receiving agent.
        to: AgentName,
        /// A message or a request.
        content: InteractionContent,
        /// When the interaction may reach the model.
        mode: HandlingMode,
        /// How urgent it is; unspecified when absent.
        salience: Option<Salience>,
        /// Whether an agent that is not running is started for it.
        wake: Wake,
    },
    /// Create a task.
    Invoke {
        /// Name of the agent; the default agent when absent.
        agent: Option<String>,
        /// The prompt of the task.
        prompt: String,
        /// Model as `PROVIDER/MODEL`; the agent's own when absent.
        model: Option<String>,
        /// When the response is written.
        wait: Wait,
    },
    /// Answer a request that was sent to the requester.
    Respond {
        /// Id of the request.
        request_id: InteractionId,
        /// Whether it is done, has failed, or is answered later.
        status: ResponseStatus,
        /// What came of it.
        result: Value,
    },
    /// Cancel a task.
    Cancel {
        /// Id of the task to cancel.
        task_id: TaskId,
    },
}

/// When the response to an invocation is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wait {
    /// As soon as the task exists.
    #[default]
    No,
    /// When the task has ended, with its result.
    ForResult,
}

/// The result of an executed order.
#[derive(Debug, Clone, PartialEq)]
pub struct OrderResult {
    /// What happened.
    pub status: OrderStatus,
    /// Name of the agent concerned; absent for the default agent and for `cancel`.
    pub agent: Option<String>,
    /// Id of the task that was created, stopped or canceled.
    pub task_id: Option<TaskId>,
    /// Id of the interaction that was sent.
    pub interaction_id: Option<InteractionId>,
    /// The result of a task, with [`Wait::ForResult`].
    pub result: Option<Value>,
}

impl OrderResult {
    /// A result with a status alone.
    pub fn new(status: OrderStatus) -> Self {
        Self { status, agent: None, task_id: None, interaction_id: None, result: None }
    }
}

/// What an executed order did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderStatus {
    /// The agent was started.
    Started,
    /// The agent was running already.
    AlreadyRunning,
    /// The agent was stopped.
    Stopped,
    /// The agent was not running.
    NotRunning,
    /// The context was replaced.
    Updated,
    /// The task or the interaction is in the journal.
    Accepted,
    /// The request was answered.
    Answered,
    /// The same order was executed before; the ids are those of that time.
    Deduplicated,
    /// The task ended successfully.
    Completed,
    /// The task ended with a failure.
    Failed,
    /// The task was canceled.
    Canceled,
    /// The task had ended already.
    AlreadyEnded,
}

/// Why an order is not executed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// The order is refused and not tried again: the response contains this error.
    #[error("{message} ({code})")]
    Refused {
        /// For programs: `INVALID_REQUEST`, `NOT_FOUND`, `CONFLICT`, …
        code: String,
        /// For people: what is wrong and what to do next.
        message: String,
    },
    /// The order cannot be executed now: no response is written, and it is tried again.
    #[error("temporarily unavailable: {reason}")]
    Unavailable {
        /// What is unavailable.
        reason: String,
    },
}
