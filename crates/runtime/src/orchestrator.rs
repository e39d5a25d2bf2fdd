//! The handle: the only way into the runtime.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::port::{
    ApprovalQuery, ApprovalSelector, IdempotencyKey, Page, Read, TaskQuery, TaskSelector,
};
use antiphon_core::{
    AgentName, AgentState, Approval, ApprovalId, Decision, EventBody, HandlingMode, InteractionId,
    LiveAgent, Position, PriceTable, QueuedMessage, Replied, RunnerConfig, Runtime, Sender,
    SessionSummary, StatusChanged, TaskId, TaskStatus, TaskSummary, Tool, ToolCallId, ToolResult,
    UserMessage, WaitingFor,
};
use tokio::sync::broadcast;

use crate::deps::RuntimeConfig;
use crate::dispatch::external_tools;
use crate::inbox::admission;
use crate::inbox::admission::StartPolicy;
use crate::inbox::arrival::{Arrival, Receipt};
use crate::inbox::lifecycle;
use crate::inbox::residents::is_resident;
use crate::inbox::start_agent;
use crate::inbox::start_agent::Started;
use crate::inbox::task_message::TaskMessage;
use crate::orchestrator_error::OrchestratorError;
use crate::runner::choose_runner;
use crate::services::Services;
use crate::task::control::approval;
use crate::task::control::cancel;
use crate::task::control::create::{AcceptedTask, create_and_start};
use crate::task::control::new_task::{ImportedConversation, NewTask};
use crate::task::control::wait;
use crate::task::control::wait::TreeProgress;
use crate::task::schedule::deadlines;
use crate::task::schedule::supervise;
use crate::task::state::TaskState;
use crate::watch::delta::Delta;
use crate::watch::follower::Follower;

/// Maximum number of tasks that recovery lists.
const RECOVERED_MAX: NonZeroUsize = NonZeroUsize::new(1_000_000).unwrap();

/// How often `wait` checks again whether a tree with suspended tasks is suspended as a whole. No
/// event announces that: a task that ends notifies its parent, which may wait for more tasks.
const RECHECK_AFTER: Duration = Duration::from_millis(200);

/// Maximum number of approvals in one list.
const APPROVALS_MAX: NonZeroUsize = NonZeroUsize::new(100_000).unwrap();

/// Accepts tasks, messages and decisions, and runs tasks. Cheap to clone; clones share all state.
#[derive(Clone)]
pub struct Orchestrator {
    pub(crate) services: Arc<Services>,
}

/// What [`Orchestrator::recover`] did with unfinished tasks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recovered {
    /// Tasks that were started again, oldest first.
    pub begun: Vec<TaskId>,
    /// Tasks that still wait for a user or a client.
    pub waiting: Vec<TaskId>,
    /// Tasks that were canceled because their parent had ended.
    pub ended: Vec<TaskId>,
}

impl Orchestrator {
    /// Creates an orchestrator. No task runs before [`recover`](Self::recover),
    /// [`resume`](Self::resume) or a new task.
    pub fn new(config: impl Into<RuntimeConfig>) -> Self {
        Self { services: Arc::new(Services::new(config.into())) }
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
        let append = task.into_append(&self.services).await?;
        // On a future of its own: the caller may stop waiting, but a recorded task must start.
        let services = Arc::clone(&self.services);
        self.services
            .background
            .run_detached(async move { Ok(create_and_start(&services, append).await?.into()) })
            .await
    }

    /// Runs `work` to its end, even when the caller stops waiting. `shutdown` waits for it.
    pub async fn run_detached<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, OrchestratorError> {
        self.services.background.run_detached(async move { Ok(work.await) }).await
    }

    /// Resumes a task that was interrupted or paused. Does nothing to a running task. A task that
    /// waits for budget is refused until more may be spent.
    pub async fn resume(&self, task_id: &TaskId) -> Result<(), OrchestratorError> {
        let state = self.task(task_id).await?;
        self.services.deps.check_model(&state)?;
        self.services.budget.check_wait(&state).await?;
        let root = self.services.reader.summary(task_id).await?.root;
        cancel::tree_without_orphans(&self.services, &root).await?;
        self.amend(task_id, |summary, state| {
            if summary.waiting_for != Some(WaitingFor::Resume) {
                return Ok(Vec::new());
            }
            let waits_for_approval =
                state.approvals.values().any(|question| question.answer.is_none());
            let change = if waits_for_approval {
                let waiting_for = Some(WaitingFor::Approval);
                StatusChanged { waiting_for, ..StatusChanged::new(TaskStatus::InputRequired) }
            } else {
                StatusChanged::new(TaskStatus::Running)
            };
            Ok(vec![change.into()])
        })
        .await
    }

    /// Starts a task in its current state: a paused task stays paused.
    pub async fn start(&self, task_id: &TaskId) -> Result<(), OrchestratorError> {
        self.services.deps.check_model(&self.task(task_id).await?)?;
        self.services.reader.unfinished(task_id).await?;
        supervise::start(&self.services, task_id);
        Ok(())
    }

    /// Suspends a task after its current step, until it is resumed.
    pub async fn pause(&self, task_id: &TaskId) -> Result<(), OrchestratorError> {
        let paused = StatusChanged {
            waiting_for: Some(WaitingFor::Resume),
            ..StatusChanged::new(TaskStatus::InputRequired)
        };
        self.amend(task_id, |summary, _| {
            let already = summary.waiting_for == Some(WaitingFor::Resume);
            Ok(if already { Vec::new() } else { vec![paused.clone().into()] })
        })
        .await
    }

    /// Sends a message of the user to a task. When this returns, the message is durable.
    pub async fn send(
        &self,
        task_id: &TaskId,
        message: UserMessage,
        mode: HandlingMode,
    ) -> Result<InteractionId, OrchestratorError> {
        self.send_message(task_id, TaskMessage { message, mode, from: Sender::User, key: None })
            .await
    }

    /// Puts an interaction into an agent's inbox. When this returns `Accepted`, it is durable. Starts an agent that
    /// was never started.
    pub async fn admit(&self, arrival: Arrival) -> Result<Receipt, OrchestratorError> {
        admission::admit(&self.services, arrival, StartPolicy::MayStart).await
    }

    /// Like [`admit`](Self::admit) for a sender that acts for an agent: never starts an agent.
    pub async fn admit_if_started(&self, arrival: Arrival) -> Result<Receipt, OrchestratorError> {
        admission::admit(&self.services, arrival, StartPolicy::OnlyStarted).await
    }

    /// Starts a resident agent: from now on it reads its inbox.
    pub async fn start_agent(&self, name: &AgentName) -> Result<Started, OrchestratorError> {
        start_agent::start_agent(&self.services, name).await
    }

    /// Stops a resident agent. Unread messages stay in its inbox until it starts again; open requests
    /// are answered as failed. Returns the id of the stopped task, if one ran. With a `key`, a
    /// repeated call stops the same task and no later one.
    pub async fn stop_agent(
        &self,
        name: &AgentName,
        key: Option<IdempotencyKey>,
    ) -> Result<Option<TaskId>, OrchestratorError> {
        start_agent::stop_agent(&self.services, name, key).await
    }

    /// The newest task of a resident agent, ended or not.
    pub async fn agent_task(
        &self,
        name: &AgentName,
    ) -> Result<Option<TaskSummary>, OrchestratorError> {
        start_agent::newest_resident(&self.services, name).await
    }

    /// The final answer to a request, if it has been recorded.
    pub async fn reply(
        &self,
        request: InteractionId,
    ) -> Result<Option<Replied>, OrchestratorError> {
        Ok(self.services.deps.journal.reply(request).await?)
    }

    /// Notifies live agents that one of their peers is no longer defined.
    pub async fn notify_undefined(&self, name: &AgentName) -> Result<(), OrchestratorError> {
        lifecycle::notify_undefined(&self.services, name).await
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
        approval::decide(&self.services, approval_id, decision, by, comment).await
    }

    /// Starts every interrupted task and watches approvals that expire. Cancels tasks whose parent
    /// has ended.
    pub async fn recover(&self) -> Result<Recovered, OrchestratorError> {
        let query = TaskQuery { which: TaskSelector::Unfinished, limit: RECOVERED_MAX };
        let mut recovered = Recovered::default();
        let mut unfinished = self.services.deps.journal.tasks(query).await?;
        unfinished.reverse();
        let there: HashSet<TaskId> = unfinished.iter().map(|task| task.task_id.clone()).collect();
        let (orphans, unfinished): (Vec<_>, Vec<_>) = unfinished
            .into_iter()
            .partition(|task| task.parent.as_ref().is_some_and(|parent| !there.contains(parent)));
        recovered.ended = orphans.into_iter().map(|task| task.task_id).collect();
        cancel::cancel_all(&self.services, recovered.ended.clone()).await?;
        for task in unfinished {
            lifecycle::register_resident(&self.services, &task).await?;
            // A runner follows tasks that run elsewhere.
            // A resident agent answers the requests that wait for it.
            // A task that waits for budget checks itself whether more may be spent.
            let waits = task.waiting_for.is_some_and(|what| what != WaitingFor::Budget);
            if waits && !is_resident(&task) {
                deadlines::watch_wall_clock(&self.services, &task.task_id).await?;
                recovered.waiting.push(task.task_id);
            } else {
                supervise::start(&self.services, &task.task_id);
                recovered.begun.push(task.task_id);
            }
        }
        lifecycle::notify_peers_again(&self.services).await?;
        for approval in self.approvals(ApprovalSelector::Pending).await? {
            if let Some(at) = approval.expires_at {
                deadlines::watch_approval(&self.services, at, approval.approval_id);
            }
        }
        Ok(recovered)
    }

    /// Cancels a task: its model call, its tools, and all its descendants. When this returns, the
    /// cancellation is durable.
    pub async fn cancel(&self, task_id: &TaskId) -> Result<(), OrchestratorError> {
        let ended = cancel::cancel(&self.services, task_id).await;
        // Descendants of an ended task have no owner, whichever caller ended the task.
        cancel::cancel_descendants(&self.services, task_id).await?;
        ended
    }

    /// Records the result of a call of a client's own tool. The first result counts. When this
    /// returns, the result is durable and the task continues.
    pub async fn tool_result(
        &self,
        task_id: &TaskId,
        tool_call_id: &ToolCallId,
        result: ToolResult,
    ) -> Result<(), OrchestratorError> {
        let clock = &self.services.deps.clock;
        self.amend(task_id, |summary, state| {
            external_tools::answer(state, summary, tool_call_id, &result, clock.now())
        })
        .await
    }

    /// Tasks that match the query, newest first.
    pub async fn tasks(&self, query: TaskQuery) -> Result<Vec<TaskSummary>, OrchestratorError> {
        Ok(self.services.deps.journal.tasks(query).await?)
    }

    /// Tools that tasks of this orchestrator can get.
    pub fn tools(&self) -> Vec<Tool> {
        self.services.deps.tools.tools()
    }

    /// The price table that costs are computed with.
    pub fn prices(&self) -> &PriceTable {
        &self.services.deps.prices
    }

    /// Sessions, the one with the newest task first.
    pub async fn sessions(
        &self,
        limit: NonZeroUsize,
    ) -> Result<Vec<SessionSummary>, OrchestratorError> {
        Ok(self.services.deps.journal.sessions(limit.into()).await?)
    }

    /// Approvals, oldest first.
    pub async fn approvals(
        &self,
        which: ApprovalSelector,
    ) -> Result<Vec<Approval>, OrchestratorError> {
        let query = ApprovalQuery { which, after: None, limit: APPROVALS_MAX };
        Ok(self.services.deps.journal.approvals(query).await?)
    }

    /// Messages that no task has read yet.
    pub async fn queued(
        &self,
        limit: NonZeroUsize,
    ) -> Result<Vec<QueuedMessage>, OrchestratorError> {
        Ok(self.services.deps.journal.queued(limit.into()).await?)
    }

    /// Live agents and their states. An agent whose task does not run is idle.
    pub async fn agents(&self, limit: NonZeroUsize) -> Result<Vec<LiveAgent>, OrchestratorError> {
        let mut agents = self.services.deps.journal.agents(limit.into()).await?;
        for agent in &mut agents {
            self.refresh(agent);
        }
        Ok(agents)
    }

    /// Corrects an agent's state: the journal knows only the last recorded one.
    fn refresh(&self, agent: &mut LiveAgent) {
        match self.services.slots.find(&agent.task_id) {
            None => agent.status.state = AgentState::Idle,
            Some(running) => {
                let age = chrono::TimeDelta::from_std(running.since_heartbeat());
                let heartbeat = self.services.deps.clock.now() - age.unwrap_or_default();
                agent.status.last_activity = agent.status.last_activity.max(heartbeat);
            }
        }
    }

    /// Events that the journal has already. Does not wait for new ones.
    pub async fn read(&self, read: Read) -> Result<Page, OrchestratorError> {
        Ok(self.services.deps.journal.read(read).await?)
    }

    /// The last position of the journal.
    pub async fn head(&self) -> Result<Position, OrchestratorError> {
        let after = Position(u64::MAX);
        let read = Read { task_id: None, after, limit: NonZeroUsize::MIN };
        Ok(self.services.deps.journal.read(read).await?.head)
    }

    /// The current state of a task.
    pub async fn task(&self, task_id: &TaskId) -> Result<TaskState, OrchestratorError> {
        self.services.reader.load(task_id).await
    }

    /// Waits until a task has ended, or until neither it nor a descendant can continue without the
    /// user or a client. Returns an error when the task stopped early or does not run.
    pub async fn wait(&self, task_id: &TaskId) -> Result<TaskState, OrchestratorError> {
        let mut seen = None;
        loop {
            // Subscribes before it checks, so that no change is missed.
            let rested = self.services.slots.suspended.notified();
            let mut updates = self.services.notifier.subscribe(Some(task_id));
            updates.borrow_and_update();
            self.services.slots.released(task_id).await;
            let state = self.task(task_id).await?;
            if state.status.is_terminal() || state.status == TaskStatus::InputRequired {
                return Ok(state);
            }
            // Another caller may have started it meanwhile.
            if self.services.slots.find(task_id).is_some() {
                continue;
            }
            if let Some(why) = self.services.slots.stop_reason(task_id) {
                return Err(why);
            }
            if !wait::waits_for_others(&self.services, &state) {
                // A start that was requested a moment ago may not have happened yet.
                if seen == Some(state.seq) {
                    return Err(OrchestratorError::NotRunning { task_id: task_id.clone() });
                }
                seen = Some(state.seq);
                tokio::time::sleep(RECHECK_AFTER).await;
                continue;
            }
            match wait::tree_progress(&self.services, &state).await? {
                TreeProgress::Active { suspended } => {
                    let look_again = async {
                        if suspended {
                            tokio::time::sleep(RECHECK_AFTER).await;
                        } else {
                            std::future::pending::<()>().await;
                        }
                    };
                    tokio::select! {
                        () = rested => {}
                        () = look_again => {}
                        _ = updates.changed() => {}
                    }
                }
                TreeProgress::Suspended => return Ok(state),
                TreeProgress::Stopped(why) => return Err(why),
            }
        }
    }

    /// All events after a position, of one task or of all: recorded ones, then new ones as they come.
    pub fn follow(&self, task_id: Option<TaskId>, after: Position) -> Follower {
        let journal = Arc::clone(&self.services.deps.journal);
        Follower::new(journal, &self.services.notifier, task_id, after)
    }

    /// Live deltas of all tasks. A slow subscriber misses some and gets an error that says how many.
    pub fn deltas(&self) -> broadcast::Receiver<Delta> {
        self.services.deltas.subscribe_all()
    }

    /// Shuts down. Running tasks may finish their step within `patience`; after that they are
    /// aborted and resume in the next process. Returns whether all stopped in time.
    pub async fn shutdown(&self, patience: Duration) -> bool {
        self.services.background.shut_down(patience).await
    }

    /// Appends the events that `events` computes for a task that has not ended, and starts the task.
    /// Computes them again when another writer was first.
    pub(crate) async fn amend(
        &self,
        task_id: &TaskId,
        events: impl Fn(&TaskSummary, &TaskState) -> Result<Vec<EventBody>, OrchestratorError>,
    ) -> Result<(), OrchestratorError> {
        loop {
            let summary = self.services.reader.unfinished(task_id).await?;
            let events = events(&summary, &self.task(task_id).await?)?;
            if events.is_empty() || self.services.append_after(&summary, events).await? {
                supervise::start(&self.services, task_id);
                return Ok(());
            }
        }
    }
}
