//! What the door needs of the system behind it: somebody who carries out orders.
//!
//! The door may ask for the same order again: after a crash, after a failed write, and when a file
//! is dropped a second time. It always asks with the same key then. Whoever implements [`Orders`]
//! sees to it that this has one effect.

use antiphon_core::{
    AgentName, Command, HandlingMode, InteractionContent, InteractionId, Salience, TaskId,
};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Carries out orders.
#[async_trait]
pub trait Orders: Send + Sync {
    /// Carries out an order once: the same key, the same answer, one effect. That also holds for
    /// calls with the same key at the same time, and across restarts. What is answered is durable.
    ///
    /// May be dropped at any point; the same order comes again then, with the same key.
    async fn carry_out(&self, order: Order, requester: &str, key: &str)
    -> Result<Done, OrderError>;
}

/// What a request asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Order {
    /// Spawn, stop, or a new context.
    Control(Command),
    /// Something for an agent's inbox.
    Send {
        /// Whose inbox.
        to: AgentName,
        /// A message or a request.
        content: InteractionContent,
        /// When it may reach the model.
        mode: HandlingMode,
        /// How urgent it is, if said.
        salience: Option<Salience>,
        /// Whether an agent that is not running is started for it.
        wake: Wake,
    },
    /// A new task.
    Invoke {
        /// For whom; absent is the default agent.
        agent: Option<String>,
        /// What to do.
        prompt: String,
        /// Which model, as `PROVIDER/MODEL`.
        model: Option<String>,
        /// When the answer is due.
        wait: Wait,
    },
    /// The end of a task.
    Cancel {
        /// Which.
        task_id: TaskId,
    },
}

/// Whether an interaction wakes its agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wake {
    /// It does.
    #[default]
    Yes,
    /// It is there when the agent works the next time.
    No,
}

/// When an invocation is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wait {
    /// As soon as the task exists.
    #[default]
    No,
    /// When the task has ended, with its result.
    ForResult,
}

/// What came of an order.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    /// In a word.
    pub status: DoneStatus,
    /// The agent it was about.
    pub agent: Option<String>,
    /// The task that was made, or ended.
    pub task_id: Option<TaskId>,
    /// The interaction that was sent.
    pub interaction_id: Option<InteractionId>,
    /// The result of a task that was waited for.
    pub result: Option<Value>,
}

impl Done {
    /// Done, with nothing more to say.
    pub fn new(status: DoneStatus) -> Self {
        Self { status, agent: None, task_id: None, interaction_id: None, result: None }
    }
}

/// What came of an order, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DoneStatus {
    /// The agent runs.
    Started,
    /// The agent ran before.
    AlreadyRunning,
    /// The agent does not run any more.
    Stopped,
    /// The agent did not run.
    NotRunning,
    /// The context is the new one.
    Updated,
    /// The task or the interaction is in the journal.
    Accepted,
    /// The same was asked for before; these are its ids.
    Deduplicated,
    /// The task ended well.
    Completed,
    /// The task ended badly.
    Failed,
    /// The task was canceled.
    Canceled,
    /// The task had ended before.
    AlreadyEnded,
}

/// Why an order was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// It never will be: answered with this.
    #[error("{message} ({code})")]
    Refused {
        /// For programs: `INVALID_REQUEST`, `NOT_FOUND`, `CONFLICT`, …
        code: String,
        /// For people: what happened and what to do next.
        message: String,
    },
    /// Not now: not answered yet, and tried again.
    #[error("not now: {reason}")]
    Unavailable {
        /// What is missing.
        reason: String,
    },
}
