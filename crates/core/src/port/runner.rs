//! The port to runners: those who work on a task elsewhere.
//!
//! | promise   | meaning                                                                      |
//! |-----------|------------------------------------------------------------------------------|
//! | in order  | what happens there is appended to the task here, in the order it happened    |
//! | goes on   | asked again for the same task, it goes on where the task's events end        |
//! | once      | however often it is asked, the work is begun once                            |
//! | cancel    | when `cancel` fires, the work there has ended before `run` returns           |
//!
//! A runner is found by its `kind`; its `config` is its own, nobody else reads it.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use crate::port::{Cancel, JournalError, TaskJournal};
use crate::{Provider, TaskId, TaskLimits};

/// Works on tasks elsewhere.
#[async_trait]
pub trait Runner: Send + Sync {
    /// What an executor calls it.
    fn kind(&self) -> &str;

    /// Whether it is an orchestrator of its own: it dispatches agents itself, and what it writes
    /// about them means something there and nothing here.
    fn is_orchestrator(&self) -> bool {
        false
    }

    /// Whether it asks the task's model through [`Run::provider`]. One that does not works also
    /// where that model is not configured.
    fn asks_here(&self) -> bool {
        true
    }

    /// Whether what it runs is bound by neither the gate nor the sandbox. Only a person may choose
    /// it, never an agent.
    fn is_unbound(&self) -> bool {
        false
    }

    /// Whether it reads the inbox of its task itself, as long as the task lasts.
    fn keeps_inbox(&self) -> bool {
        false
    }

    /// Whether it could work with this configuration; an error is what to tell the caller.
    fn check(&self, config: &Value) -> Result<(), String>;

    /// Works on a task until it has ended, waits for somebody, or cannot go on without the
    /// orchestrator: then there are calls without a result that only the orchestrator answers.
    async fn run(&self, run: Run) -> Result<(), RunnerError>;
}

/// A task to be worked on elsewhere.
pub struct Run {
    /// Which.
    pub task_id: TaskId,
    /// The runner's own part of the executor.
    pub config: Value,
    /// How far it may go: what is left of its own limits and of those of every task above.
    pub limits: TaskLimits,
    /// Whether it may dispatch anybody.
    pub dispatches: DispatchPermission,
    /// The journal as far as this task is concerned: its own events can be appended, and nothing
    /// that a person decides; its own and what was said before it can be read.
    pub journal: Arc<dyn TaskJournal>,
    /// Who answers for its model, for runners that have nobody of their own.
    pub provider: Arc<dyn Provider>,
    /// Fires when the task is canceled.
    pub cancel: Cancel,
    /// Fires when everything here comes to rest: the work there may go on, nobody follows it.
    pub rest: Cancel,
    /// Tells that somebody else wrote to the task: there may be a message for it.
    pub news: Box<dyn TaskUpdates>,
}

/// Whether a task may dispatch anybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DispatchPermission {
    /// As far as its limits go.
    Allowed,
    /// It is as deep as tasks may be.
    Denied,
}

/// Tells that something was written to a task.
#[async_trait]
pub trait TaskUpdates: Send {
    /// Returns when something was written since the last time. Cancel safe.
    async fn next(&mut self);
}

/// There never is any.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTaskUpdates;

#[async_trait]
impl TaskUpdates for NoTaskUpdates {
    async fn next(&mut self) {
        std::future::pending::<()>().await;
    }
}

/// Why a runner stopped before its task did.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunnerError {
    /// Ask again: it may be there in a moment.
    #[error("the runner cannot be reached: {reason}")]
    Unavailable {
        /// Why.
        reason: String,
    },
    /// Give up: it will not work on this task.
    #[error("the runner refuses: {reason}")]
    Refused {
        /// Why, and what to do.
        reason: String,
    },
    /// See there.
    #[error(transparent)]
    Journal(#[from] JournalError),
}
