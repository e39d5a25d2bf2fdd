//! The handle: the only way into the runtime. What it does with tasks is here.
//!
//! | file       | subject                                                        |
//! |------------|----------------------------------------------------------------|
//! | `inboxes`  | agents and their inboxes                                       |
//! | `recovery` | the tasks that the process before left unfinished              |
//! | `reads`    | lists, single tasks, events and deltas                         |
//!
//! Larger subjects add their methods where they are: `task/control/`, `budget/`, `runner/`.

mod inboxes;
mod reads;
mod recovery;

pub use recovery::Recovered;

use std::sync::Arc;
use std::time::Duration;

use antiphon_core::{
    ApprovalDecided, ApprovalId, ApprovalReply, Decision, EventBody, RunnerConfig, Runtime,
    StatusChanged, TaskId, TaskRestored, TaskStatus, TaskSummary, ToolCallId, ToolResult,
    WaitingFor,
};

use crate::deps::{RuntimeConfig, TaskEnvironments};
use crate::dispatch::external_tools;
use crate::orchestrator_error::OrchestratorError;
use crate::runner::choose_runner;
use crate::services::Services;
use crate::task::control::create::{AcceptedTask, create_and_start};
use crate::task::control::new_task::{ImportedConversation, NewTask};
use crate::task::control::{approval, cancel_tree};
use crate::task::schedule::supervise;
use crate::task::state::TaskState;
use crate::task::state::reader::Before;
use crate::task::state::state_cache::AfterEnd;

/// The status of a task that is paused.
const PAUSED: StatusChanged = StatusChanged {
    status: TaskStatus::InputRequired,
    detail: None,
    waiting_for: Some(WaitingFor::Resume),
};

/// Accepts tasks, messages and decisions, and runs tasks. Cheap to clone; clones share all state.
#[derive(Clone)]
pub struct Orchestrator {
    pub(crate) services: Arc<Services>,
}

impl Orchestrator {
    /// Creates an orchestrator. No task runs before [`recover`](Self::recover),
    /// [`resume`](Self::resume) or a new task.
    pub fn new(config: impl Into<RuntimeConfig>) -> Self {
        Self { services: Arc::new(Services::new(config.into(), None)) }
    }

    /// The same, with environments of tasks that belong to other processes of the user.
    pub fn with_environments(
        config: impl Into<RuntimeConfig>,
        environments: Arc<dyn TaskEnvironments>,
    ) -> Self {
        Self { services: Arc::new(Services::new(config.into(), Some(environments))) }
    }

    pub(crate) fn services(&self) -> &Arc<Services> {
        &self.services
    }

    /// Creates an orchestrator that records commands and runs no task. The next process that runs
    /// tasks acts on what it recorded.
    pub fn record_only(config: impl Into<RuntimeConfig>) -> Self {
        let orchestrator = Self::new(config);
        orchestrator.services.background.stop.cancel();
        orchestrator
    }

    /// Records a conversation from a file or a fork as a completed task, so that a later task can
    /// continue it.
    pub async fn import_conversation(
        &self,
        conversation: ImportedConversation,
    ) -> Result<AcceptedTask, OrchestratorError> {
        let append = conversation.into_append(&self.services).await?;
        Ok(self.services.append(append).await?.into())
    }

    /// Returns the runner that an agent with these runtimes gets; `None` is this process. The error
    /// says for each runtime why it is not available.
    pub fn choose_runner(&self, runtimes: &[Runtime]) -> Result<Option<RunnerConfig>, String> {
        choose_runner::choose(runtimes, &self.services.deps.runners)
    }

    /// Whether a task with this runner calls its model from here.
    pub fn calls_model(&self, runner: &RunnerConfig) -> bool {
        self.services.deps.uses_run_provider(Some(runner))
    }

    /// Whether neither a gate nor a sandbox bounds the runner. Only a user may start such tasks.
    pub fn is_unrestricted(&self, runner: &RunnerConfig) -> bool {
        let mut runners = self.services.deps.runners.iter();
        runners.any(|known| known.kind() == runner.kind && known.is_unrestricted())
    }

    /// Checks whether `task` would be accepted. Records nothing.
    pub async fn check(&self, task: NewTask) -> Result<(), OrchestratorError> {
        task.into_append(&self.services).await.map(drop)
    }

    /// Accepts a task and starts it. When this returns, the task is durable.
    pub async fn invoke(&self, task: NewTask) -> Result<AcceptedTask, OrchestratorError> {
        self.services.background.check_accepts()?;
        let append = task.into_append(&self.services).await?;
        // On a future of its own: the caller may stop waiting, but a recorded task must start.
        let services = Arc::clone(&self.services);
        self.services
            .background
            .run_detached(async move {
                let after_end = AfterEnd::KeepConversation;
                Ok(create_and_start(&services, append, after_end).await?.into())
            })
            .await
    }

    /// Runs `work` to its end, even when the caller stops waiting. `shutdown` waits for it.
    pub async fn run_detached<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, OrchestratorError> {
        self.services.background.run_detached(async move { Ok(work.await) }).await
    }

    /// Starts a task in its current state: a paused task stays paused.
    pub async fn start(&self, task_id: &TaskId) -> Result<(), OrchestratorError> {
        self.services.background.check_accepts()?;
        self.services.check_model(&self.task_alone(task_id).await?)?;
        self.services.reader.unfinished(task_id).await?;
        supervise::start(&self.services, task_id);
        Ok(())
    }

    /// Suspends a task after its current step, until it is resumed.
    pub async fn pause(&self, task_id: &TaskId) -> Result<(), OrchestratorError> {
        self.amend(task_id, |summary, _| {
            let already = summary.waiting_for == Some(WaitingFor::Resume);
            Ok(if already { Vec::new() } else { vec![PAUSED.into()] })
        })
        .await
    }

    /// Pauses a task that came from a file that another user may have made, and drops its route, its
    /// runner, the rules that were allowed for it and its approvals. `file` is recorded.
    pub async fn mark_restored(
        &self,
        task_id: &TaskId,
        file: &str,
    ) -> Result<(), OrchestratorError> {
        // They may have been made by another user too.
        self.services.deps.journal.forget_checkpoints().await?;
        self.amend(task_id, |summary, state| {
            let open = state.approvals.values().filter(|question| question.answer.is_none());
            let mut events: Vec<EventBody> = open
                .map(|question| {
                    let approval_id = question.approval_id.clone();
                    let (decision, by) = (Decision::Deny, "restore".to_owned());
                    ApprovalDecided { approval_id, decision, by, comment: None, answer: None }
                        .into()
                })
                .collect();
            events.push(TaskRestored { file: file.to_owned() }.into());
            if summary.waiting_for != Some(WaitingFor::Resume) {
                events.push(PAUSED.into());
            }
            Ok(events)
        })
        .await
    }

    /// Answers an approval. The first answer counts. When this returns, the answer is durable and the
    /// task continues.
    pub async fn decide(
        &self,
        approval_id: &ApprovalId,
        decision: Decision,
        by: &str,
        comment: Option<String>,
    ) -> Result<(), OrchestratorError> {
        let reply = ApprovalReply { decision, comment, answer: None };
        approval::decide(&self.services, approval_id, &reply, by, None).await
    }

    /// The same with an answer to the question that waits there, or a changed plan.
    pub async fn answer(
        &self,
        approval_id: &ApprovalId,
        reply: &ApprovalReply,
        by: &str,
    ) -> Result<(), OrchestratorError> {
        approval::decide(&self.services, approval_id, reply, by, None).await
    }

    /// Cancels a task: its model call, its tools, and all its descendants. When this returns, the
    /// cancellation is durable.
    pub async fn cancel(&self, task_id: &TaskId) -> Result<(), OrchestratorError> {
        cancel_tree::cancel_tree(&self.services, task_id).await
    }

    /// Records the result of a call of a client's own tool. The first result counts. When this
    /// returns, the result is durable and the task continues.
    pub async fn tool_result(
        &self,
        task_id: &TaskId,
        tool_call_id: &ToolCallId,
        result: ToolResult,
    ) -> Result<(), OrchestratorError> {
        let (clock, time) = (&self.services.deps.clock, &self.services.time);
        self.amend(task_id, |summary, state| {
            external_tools::answer(state, summary, tool_call_id, &result, clock.now(), time)
        })
        .await
    }

    /// Begins to stop: new work is refused, no task starts and no model is called, and tools that run
    /// may finish within `grace`; their results are recorded. Returns whether all work has stopped.
    /// [`shutdown`](Self::shutdown) cuts off the rest.
    pub async fn drain(&self, grace: Duration) -> bool {
        self.services.background.drain(grace).await
    }

    /// Returns at the first moment at which no model and no tool is called here. No task takes a step from then on;
    /// until then tasks go on, and new ones are accepted.
    pub async fn until_quiet(&self) {
        self.services.background.until_quiet().await;
    }

    /// Tasks go on also behind that moment, unless it has come already. Returns whether they do.
    pub fn goes_on_when_quiet(&self) -> bool {
        self.services.background.goes_on_when_quiet()
    }

    /// Begins to stop for the next process: new work is refused, and no task takes another step. Returns when all
    /// calls of models and tools that run have answered, and their answers are recorded. Only a runner that works
    /// by itself is left as it is.
    pub async fn hand_over(&self) {
        self.services.background.hand_over().await;
    }

    /// Whether a task works here: a model or a tool may run for it.
    pub fn is_working(&self) -> bool {
        !self.services.slots.active().is_empty()
    }

    /// Whether [`drain`](Self::drain) or [`hand_over`](Self::hand_over) was called.
    pub fn is_draining(&self) -> bool {
        self.services.background.is_draining()
    }

    /// Shuts down. Running tasks may finish their step within `patience`; after that they are
    /// aborted and resume in the next process. Returns whether all stopped in time.
    pub async fn shutdown(&self, patience: Duration) -> bool {
        self.services.background.shut_down(patience).await
    }

    /// Appends the events that `events` computes for a task that has not ended, and starts the task.
    /// Computes them again when another writer was first. The messages of the task are not read.
    pub(crate) async fn amend(
        &self,
        task_id: &TaskId,
        events: impl Fn(&TaskSummary, &TaskState) -> Result<Vec<EventBody>, OrchestratorError>,
    ) -> Result<(), OrchestratorError> {
        self.amend_with(task_id, Before::NoMessages, events).await
    }

    /// The same, with as much of the conversation as `events` needs.
    pub(crate) async fn amend_with(
        &self,
        task_id: &TaskId,
        before: Before,
        events: impl Fn(&TaskSummary, &TaskState) -> Result<Vec<EventBody>, OrchestratorError>,
    ) -> Result<(), OrchestratorError> {
        loop {
            let summary = self.services.reader.unfinished(task_id).await?;
            let state = self.services.reader.load_with(task_id, before).await?;
            let events = events(&summary, &state)?;
            let shared = Arc::clone(&self.services);
            // The task starts even if the caller goes away as soon as the journal has the events.
            let amended = self.services.background.run_detached(async move {
                let is_done = events.is_empty() || shared.append_after(&summary, events).await?;
                if is_done {
                    supervise::start(&shared, &summary.task_id);
                }
                Ok(is_done)
            });
            if amended.await? {
                return Ok(());
            }
        }
    }
}
