//! The handle: the only way into the runtime.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::port::{
    AgentQuery, ApprovalQuery, ApprovalSelector, IdempotencyKey, Page, QueuedQuery, Read,
    SessionQuery, TaskQuery, TaskSelector,
};
use antiphon_core::{
    AgentName, AgentState, Approval, ApprovalDecided, ApprovalId, Decision, EventBody,
    HandlingMode, InteractionId, LiveAgent, Position, PriceTable, Provenance, QueuedMessage,
    Replied, ResponseStatus, RunnerConfig, Runtime, Sender, SessionSummary, StatusChanged,
    TaskCreated, TaskId, TaskRestored, TaskStatus, TaskSummary, Tool, ToolCallId, ToolResult,
    UserMessage, WaitingFor,
};
use serde_json::Value;

use crate::budget::tree_usage;
use crate::deps::{BreakerState, RuntimeConfig, TaskEnvironments};
use crate::dispatch::external_tools;
use crate::inbox::admission;
use crate::inbox::admission::StartPolicy;
use crate::inbox::arrival::{Arrival, Receipt};
use crate::inbox::input_permission;
use crate::inbox::lifecycle;
use crate::inbox::requests;
use crate::inbox::residents::is_resident;
use crate::inbox::start_agent;
use crate::inbox::start_agent::Started;
use crate::inbox::task_message::TaskMessage;
use crate::orchestrator_error::OrchestratorError;
use crate::runner::{choose_runner, held_at_peer};
use crate::services::Services;
use crate::storage::StorageStatus;
use crate::task::control::approval;
use crate::task::control::cancel;
use crate::task::control::cancel_tree;
use crate::task::control::create::{AcceptedTask, create_and_start};
use crate::task::control::new_task::{ImportedConversation, NewTask};
use crate::task::limits;
use crate::task::schedule::deadlines;
use crate::task::schedule::supervise;
use crate::task::state::TaskState;
use crate::task::state::reader::Before;
use crate::task::state::state_cache::AfterEnd;
use crate::watch::delta_watchers::DeltaWatcher;
use crate::watch::follower::Follower;

/// The status of a task that is paused.
const PAUSED: StatusChanged = StatusChanged {
    status: TaskStatus::InputRequired,
    detail: None,
    waiting_for: Some(WaitingFor::Resume),
};

/// Maximum number of tasks that recovery lists.
const RECOVERED_MAX: NonZeroUsize = NonZeroUsize::new(1_000_000).unwrap();

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
                    ApprovalDecided { approval_id, decision, by, comment: None }.into()
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

    /// Sends a message of the owner to a task. When this returns, the message is durable.
    pub async fn send(
        &self,
        task_id: &TaskId,
        message: UserMessage,
        mode: HandlingMode,
    ) -> Result<InteractionId, OrchestratorError> {
        let (from, provenance) = (Sender::User, Provenance::Owner);
        self.send_message(task_id, TaskMessage { message, mode, from, key: None, provenance }).await
    }

    /// Puts an interaction into an agent's inbox. When this returns `Accepted`, it is durable. Starts an agent that
    /// was never started.
    pub async fn admit(&self, arrival: Arrival) -> Result<Receipt, OrchestratorError> {
        self.services.background.check_accepts()?;
        admission::admit(&self.services, arrival, StartPolicy::MayStart).await
    }

    /// Like [`admit`](Self::admit) for a sender that acts for an agent: never starts an agent.
    pub async fn admit_if_started(&self, arrival: Arrival) -> Result<Receipt, OrchestratorError> {
        self.services.background.check_accepts()?;
        admission::admit(&self.services, arrival, StartPolicy::OnlyStarted).await
    }

    /// Starts a resident agent: from now on it reads its inbox. `provenance` is where the order came from.
    pub async fn start_agent(
        &self,
        name: &AgentName,
        provenance: &Provenance,
    ) -> Result<Started, OrchestratorError> {
        self.services.background.check_accepts()?;
        start_agent::start_agent(&self.services, name, provenance).await
    }

    /// Allows the agent file of a project to start programs without a sandbox, from now on and as long as its
    /// content is the same. Only for an order of a person: the caller checked that. Does nothing for an
    /// agent that needs no permission.
    pub async fn allow_unsandboxed(&self, name: &AgentName) -> Result<(), OrchestratorError> {
        let deps = &self.services.deps;
        let untrusted =
            deps.agents.as_ref().and_then(|agents| agents.unsandboxed(name.as_str()).err());
        let Some(file) = untrusted else { return Ok(()) };
        let rule = input_permission::agent_start_rule(name.as_str(), &file.version);
        let kept = deps.gate.remember(&rule).await;
        kept.map_err(|reason| OrchestratorError::RuleNotSaved { reason })
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

    /// Answers a request in the name of the agent that it was sent to. Returns false when the agent has no such open
    /// request. The same answer a second time changes nothing.
    pub async fn respond(
        &self,
        name: &AgentName,
        request: InteractionId,
        status: ResponseStatus,
        result: Value,
    ) -> Result<bool, OrchestratorError> {
        let Some(task) = self.agent_task(name).await? else { return Ok(false) };
        let services = Arc::clone(&self.services);
        let answering = async move {
            requests::answer_for_agent(&services, &task.task_id, request, status, &result).await
        };
        self.services.background.run_detached(answering).await
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
        self.start_again(unfinished, &mut recovered).await?;
        let mut known = HashSet::new();
        for approval in self.approvals(ApprovalSelector::Pending).await? {
            if let Some(at) = approval.expires_at {
                if known.insert(approval.task_id.clone()) {
                    let state = self.task_alone(&approval.task_id).await?;
                    limits::know_deadlines(&self.services.time, &state);
                }
                deadlines::watch_approval(&self.services, at, approval.approval_id);
            }
        }
        Ok(recovered)
    }

    /// Starts the tasks that do not wait for a user or a client, and watches the time limits of the others.
    async fn start_again(
        &self,
        tasks: Vec<TaskSummary>,
        recovered: &mut Recovered,
    ) -> Result<(), OrchestratorError> {
        // A runner follows tasks that run elsewhere.
        // A resident agent answers the requests that wait for it.
        // A task that waits for budget or its model checks itself whether it may continue.
        let waits = |task: &TaskSummary| {
            let waits = task.waiting_for.is_some_and(|what| !what.continues_by_itself());
            waits && !is_resident(task)
        };
        let read = tasks.iter().filter(|task| is_resident(task) || waits(task));
        let read = read.map(|task| task.task_id.clone()).collect();
        let creations = self.services.reader.creations(read).await?;
        let mut live = HashMap::new();
        for task in tasks {
            let creation = creations.get(&task.task_id);
            if waits(&task) {
                if let Some((created, at)) = creation {
                    deadlines::watch_wall_clock_of(&self.services, &task.task_id, created, *at);
                }
                recovered.waiting.push(task.task_id);
                continue;
            }
            if let Some((created, _)) = creation {
                lifecycle::register_resident(&self.services, &task, created);
                live.insert(task.task_id.clone(), task.clone());
            }
            supervise::start(&self.services, &task.task_id);
            recovered.begun.push(task.task_id);
        }
        lifecycle::notify_peers_again(&self.services, &live).await
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

    /// Tasks that match the query, newest first. One that cannot record what it has says so, and one that waits on a
    /// peer says for what.
    pub async fn tasks(&self, query: TaskQuery) -> Result<Vec<TaskSummary>, OrchestratorError> {
        let mut tasks = self.services.deps.journal.tasks(query).await?;
        held_at_peer::mark(&self.services, &mut tasks).await?;
        self.services.storage.mark_waiting(&mut tasks);
        Ok(tasks)
    }

    /// Tools that tasks of this orchestrator can get.
    pub fn tools(&self) -> Vec<Arc<Tool>> {
        self.services.deps.tools.tools()
    }

    /// States of the circuit breakers of the providers that were called, by name.
    pub fn breakers(&self) -> BTreeMap<String, BreakerState> {
        self.services.deps.models.breakers()
    }

    /// The price table that costs are computed with.
    pub fn prices(&self) -> &PriceTable {
        &self.services.deps.prices
    }

    /// Sessions, the one with the newest task first: the first ones up to a limit, or a page of them.
    pub async fn sessions(
        &self,
        query: impl Into<SessionQuery>,
    ) -> Result<Vec<SessionSummary>, OrchestratorError> {
        Ok(self.services.deps.journal.sessions(query.into()).await?)
    }

    /// Approvals, oldest first: all of a selection, or a page of it.
    pub async fn approvals(
        &self,
        query: impl Into<ApprovalQuery>,
    ) -> Result<Vec<Approval>, OrchestratorError> {
        Ok(self.services.deps.journal.approvals(query.into()).await?)
    }

    /// The oldest approval that a task or a descendant waits for, as soon as there is one. Cancel safe.
    pub async fn approval_needed(&self, task_id: &TaskId) -> Result<Approval, OrchestratorError> {
        approval::needed_by(&self.services, task_id).await
    }

    /// Messages that no task has read yet, in the order of arrival: the first ones up to a limit, or a page of them.
    pub async fn queued(
        &self,
        query: impl Into<QueuedQuery>,
    ) -> Result<Vec<QueuedMessage>, OrchestratorError> {
        Ok(self.services.deps.journal.queued(query.into()).await?)
    }

    /// Live agents and their states, the one with the newest task first. An agent whose calls wait for others is at its
    /// tool calls; any other agent whose task does not run is idle.
    pub async fn agents(
        &self,
        query: impl Into<AgentQuery>,
    ) -> Result<Vec<LiveAgent>, OrchestratorError> {
        let mut agents = self.services.deps.journal.agents(query.into()).await?;
        for agent in &mut agents {
            self.refresh(agent);
        }
        Ok(agents)
    }

    /// Corrects an agent's state: the journal knows only the last recorded one.
    fn refresh(&self, agent: &mut LiveAgent) {
        let (services, task_id) = (&self.services, &agent.task_id);
        let waits = agent.status.state == AgentState::ToolCall
            && (services.waiters.waits(task_id) || services.request_waits.waits(task_id));
        if !waits && services.slots.find(task_id).is_none() {
            agent.status.state = AgentState::Idle;
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

    /// Whether the journal takes events, and what waits for it. Writes nothing that a reader sees. A
    /// change is logged.
    pub async fn storage(&self) -> StorageStatus {
        let services = &self.services;
        let fault = services.deps.journal.check_append().await.err();
        services.storage.report(fault.as_ref());
        if fault.is_none() {
            services.storage.works();
        }
        StorageStatus {
            fault,
            journal_errors: services.storage.errors(),
            tasks_waiting: services.storage.tasks_waiting(),
            tasks_stuck: services.slots.stuck(),
        }
    }

    /// The current state of a task, with its whole conversation.
    pub async fn task(&self, task_id: &TaskId) -> Result<TaskState, OrchestratorError> {
        self.services.reader.load_with(task_id, Before::All).await
    }

    /// The current state of a task, for a caller that needs no messages: it has those of its own events at most.
    pub async fn task_alone(&self, task_id: &TaskId) -> Result<TaskState, OrchestratorError> {
        self.services.reader.load_without_messages(task_id).await
    }

    /// The creation of a task. Does not read the rest of the task; a handover is not in it.
    pub async fn created(&self, task_id: &TaskId) -> Result<TaskCreated, OrchestratorError> {
        Ok(tree_usage::creation(task_id, &*self.services.deps.journal).await?.0)
    }

    /// The last recorded status of a task, with its result or the reason for a failure or a wait. `None` before the
    /// first one. Does not read the rest of the task.
    pub async fn last_status(
        &self,
        task_id: &TaskId,
    ) -> Result<Option<StatusChanged>, OrchestratorError> {
        Ok(self.services.deps.journal.last_status(task_id).await?)
    }

    /// All events after a position, of one task or of all: recorded ones, then new ones as they come.
    pub fn follow(&self, task_id: Option<TaskId>, after: Position) -> Follower {
        let journal = Arc::clone(&self.services.deps.journal);
        Follower::new(journal, &self.services.notifier, task_id, after)
    }

    /// Live deltas of all tasks. A slow watcher misses some and is told how many.
    pub fn deltas(&self) -> DeltaWatcher {
        self.services.deltas.watch_all()
    }

    /// Live deltas of one task. A slow watcher misses some and is told how many.
    pub fn task_deltas(&self, task_id: &TaskId) -> DeltaWatcher {
        self.services.deltas.watch_task(task_id)
    }

    /// Begins to stop: new work is refused, no task starts and no model is called, and tools that run
    /// may finish within `grace`; their results are recorded. Returns whether all work has stopped.
    /// [`shutdown`](Self::shutdown) cuts off the rest.
    pub async fn drain(&self, grace: Duration) -> bool {
        self.services.background.drain(grace).await
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
