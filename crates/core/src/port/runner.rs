//! The port to runners, which run a task elsewhere.
//!
//! | guarantee | meaning                                                                      |
//! |-----------|------------------------------------------------------------------------------|
//! | in order  | remote events are appended to the task in the order they happened            |
//! | resumes   | called again for the same task, it continues after the task's last event     |
//! | once      | however often it is called, the work is started once                         |
//! | cancel    | when `cancel` fires, the remote work has ended before `run` returns          |
//!
//! The `kind` selects the runner; only the runner reads its `config`.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use crate::port::{Cancel, JournalError, TaskJournal};
use crate::{InteractionId, MessageQueued, Provider, Seq, TaskId, TaskLimits};

/// Runs tasks elsewhere.
#[async_trait]
pub trait Runner: Send + Sync {
    /// Kind of the runner, as in [`RunnerConfig`](crate::RunnerConfig).
    fn kind(&self) -> &str;

    /// Whether the runner is an orchestrator of its own: it dispatches agents itself, and the ids in its
    /// events are valid only there.
    fn is_orchestrator(&self) -> bool {
        false
    }

    /// Whether the runner calls the task's model through [`RunnerTask::provider`]. Otherwise it works
    /// without that model being configured here.
    fn uses_run_provider(&self) -> bool {
        true
    }

    /// Whether neither the gate nor the sandbox restricts what it runs. Only a person may choose
    /// such a runner, never an agent.
    fn is_unrestricted(&self) -> bool {
        false
    }

    /// Whether it reads the inbox of its task itself, until the task ends.
    fn reads_inbox(&self) -> bool {
        false
    }

    /// Whether the events that it relays have the messages that [`Runner::send_remote`] sent. Otherwise the orchestrator
    /// records a message once the other one has it.
    fn relays_messages(&self) -> bool {
        true
    }

    /// Whether it can run with this configuration. The error is a text for the caller.
    fn check(&self, config: &Value) -> Result<(), String>;

    /// The configuration of a new task: the same with the defaults of now, which the task keeps.
    fn with_defaults(&self, config: &Value) -> Value {
        config.clone()
    }

    /// Cancels the task at the other orchestrator. A task that was never created there is not created later.
    /// Only for runners that are an orchestrator.
    async fn cancel_remote(&self, task: RemoteTask<'_>) -> Result<(), RemoteError> {
        Err(no_orchestrator(task))
    }

    /// Puts a message into the inbox of the task at the other orchestrator, once for each id of a message. When
    /// this returns, it is durable there. Only for runners that are an orchestrator.
    async fn send_remote(
        &self,
        task: RemoteTask<'_>,
        message: &MessageQueued,
    ) -> Result<(), RemoteError> {
        let _ = message;
        Err(no_orchestrator(task))
    }

    /// Runs a task until it has ended, is suspended, or needs the orchestrator: then there are
    /// tool calls without a result that only the orchestrator can run.
    async fn run(&self, run: RunnerTask) -> Result<(), RunnerError>;
}

/// A task that another orchestrator runs.
#[derive(Debug, Clone, Copy)]
pub struct RemoteTask<'a> {
    /// Configuration of the runner.
    pub config: &'a Value,
    /// Id of the task here.
    pub task_id: &'a TaskId,
    /// Id of the task there, if the other orchestrator has confirmed that it created it.
    pub remote_task_id: Option<&'a TaskId>,
}

/// Why another orchestrator did not carry out a command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    /// Try again: it cannot be reached, or not now.
    #[error("{reason}")]
    Unavailable {
        /// Cause, and what to do about it.
        reason: String,
    },
    /// The task has ended there.
    #[error("the task has ended there")]
    Ended,
    /// Do not repeat the command: it will not carry it out.
    #[error("{reason}")]
    Refused {
        /// Cause, and what to do about it.
        reason: String,
    },
}

fn no_orchestrator(task: RemoteTask<'_>) -> RemoteError {
    let reason = format!("no other orchestrator runs task {}", task.task_id);
    RemoteError::Refused { reason }
}

/// A task for a runner.
pub struct RunnerTask {
    /// Id of the task.
    pub task_id: TaskId,
    /// Configuration of the runner.
    pub config: Value,
    /// Limits: what is left of the task's own limits and of those of every task above.
    pub limits: TaskLimits,
    /// Whether the task may dispatch agents.
    pub dispatches: DispatchPermission,
    /// The journal of this task. The runner appends events of the task, except decisions of a person; it
    /// reads the task's events and the history before them.
    pub journal: Arc<dyn TaskJournal>,
    /// Model of the task, for runners that have no model of their own.
    pub provider: Arc<dyn Provider>,
    /// Fires when the task is canceled.
    pub cancel: Cancel,
    /// Fires when a person interrupts the turn: the calls of the model and the tools end, the task waits for a
    /// resume, and `run` returns.
    pub interrupt: Cancel,
    /// Fires when the orchestrator shuts down: the remote work may go on, without being followed.
    pub shutdown: Cancel,
    /// Reports that another writer appended to the task: its inbox may hold a message.
    pub updates: Box<dyn TaskUpdates>,
    /// Decides what a program without a sandbox may get as input.
    pub input: Arc<dyn RunnerInput>,
    /// Shows text that the journal does not have yet.
    pub display: Arc<dyn AnswerDisplay>,
}

/// Shows the text that an agent elsewhere is writing to the watchers of the task, before the journal has it.
pub trait AnswerDisplay: Send + Sync {
    /// Shows a change. `after` is the last event of the task before the text.
    fn show(&self, after: Seq, change: AnswerChange<'_>);
}

/// How the text that is shown changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerChange<'a> {
    /// It is longer by this.
    More(&'a str),
    /// What was shown does not count.
    Superseded,
    /// The journal has it.
    Complete,
}

/// Shows nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct HiddenAnswer;

impl AnswerDisplay for HiddenAnswer {
    fn show(&self, _: Seq, _: AnswerChange<'_>) {}
}

/// Decides what a program without a sandbox may get as input. One check for every way into it.
#[async_trait]
pub trait RunnerInput: Send + Sync {
    /// Whether the program may be started, or get a message of the inbox. When a person has to decide,
    /// the question is in the journal before this returns, once. A denied message leaves the inbox.
    async fn permit(&self, subject: InputSubject) -> Result<InputPermit, JournalError>;
}

/// What a program gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InputSubject {
    /// Its start, with the first message of its task.
    Start,
    /// A message in the inbox of its task.
    Message(InteractionId),
}

/// The decision about an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputPermit {
    /// The program may get it.
    Allowed,
    /// A person was asked and has not decided yet.
    Asked {
        /// What was asked, in a few words.
        question: String,
    },
    /// The program does not get it.
    Denied {
        /// Why not, and what to do about it.
        reason: String,
    },
}

/// Allows every input: for runners that restrict what they run, and for tests.
#[derive(Debug, Clone, Copy, Default)]
pub struct UncheckedInput;

#[async_trait]
impl RunnerInput for UncheckedInput {
    async fn permit(&self, _: InputSubject) -> Result<InputPermit, JournalError> {
        Ok(InputPermit::Allowed)
    }
}

/// Whether a task may dispatch agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DispatchPermission {
    /// Within its limits.
    Allowed,
    /// Not at all: the task is as deep as tasks may be.
    Denied,
}

/// Reports appends to a task.
#[async_trait]
pub trait TaskUpdates: Send {
    /// Returns when the task has new events since the last call. Cancel safe.
    async fn next(&mut self);
}

/// Never reports an append.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTaskUpdates;

#[async_trait]
impl TaskUpdates for NoTaskUpdates {
    async fn next(&mut self) {
        std::future::pending::<()>().await;
    }
}

/// Why a runner stopped before its task ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunnerError {
    /// Try again: the runner may be back in a moment.
    #[error("the runner cannot be reached: {reason}")]
    Unavailable {
        /// Cause, and what to do about it.
        reason: String,
    },
    /// Wait until there is room: what the runner writes on the disk of the journal could not be written.
    #[error("the disk cannot be written: {reason}")]
    Storage {
        /// Cause, and what to do about it.
        reason: String,
    },
    /// Fail the task: the runner will not run it.
    #[error("the runner refuses: {reason}")]
    Refused {
        /// Cause, and what to do about it.
        reason: String,
    },
    /// The journal failed or refused.
    #[error(transparent)]
    Journal(#[from] JournalError),
}
