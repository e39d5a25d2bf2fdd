//! A request for a task, as every interface gives it to a [`TaskFactory`](crate::TaskFactory).

use std::sync::Arc;

use antiphon_core::{Message, ModelRef, RawJson, SessionId, TaskLimits, Tool, UserMessage};

/// A request for a task. The task factory decides what is absent.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRequest {
    /// Name of the agent that works on the task; the default agent when absent.
    pub agent: Option<String>,
    /// The model to use; the agent's own when absent.
    pub model: Option<ModelRef>,
    /// The prompt.
    pub message: UserMessage,
    /// Messages that precede the prompt, the oldest first.
    pub history: Vec<Arc<Message>>,
    /// A system prompt that replaces the agent's own.
    pub system_prompt: Option<String>,
    /// Names of the tools that the task may use; the agent's own when absent.
    pub tools: Option<Vec<String>>,
    /// Names of the agents that the task may call; the agent's own when absent.
    pub agents: Option<Vec<String>>,
    /// Tools that the client runs itself.
    pub external_tools: Vec<Arc<Tool>>,
    /// Limits of the task; the agent's own where absent.
    pub limits: TaskLimits,
    /// JSON Schema that the result of the task has to match.
    pub output_schema: Option<RawJson>,
    /// The session that the task continues; a new one when absent.
    pub session_id: Option<SessionId>,
}
