//! Queries: lists, single tasks, events and live deltas. Nothing here changes the journal.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use antiphon_core::port::{
    AgentQuery, ApprovalQuery, Page, QueuedQuery, Read, SessionQuery, TaskQuery,
};
use antiphon_core::{
    AgentState, Approval, LiveAgent, Position, PriceTable, QueuedMessage, SessionSummary,
    StatusChanged, TaskCreated, TaskId, TaskSummary, Tool,
};

use chrono::{DateTime, Utc};

use crate::budget::tree_usage;
use crate::deps::BreakerState;
use crate::dispatch::child_tools::is_ours;
use crate::orchestrator::Orchestrator;
use crate::orchestrator_error::OrchestratorError;
use crate::runner::held_at_peer;
use crate::storage::StorageStatus;
use crate::task::control::approval::{self, ApprovalRequests};
use crate::task::state::TaskState;
use crate::task::state::reader::Before;
use crate::watch::delta_watchers::DeltaWatcher;
use crate::watch::follower::Follower;

impl Orchestrator {
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

    /// Whether a task of this orchestrator can get a tool of this name.
    pub fn has_tool(&self, name: &str) -> bool {
        is_ours(name) || self.tools().iter().any(|tool| tool.name == name)
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

    /// The same for a task that did not exist when `requests` began: nothing is read before a task asks. Cancel safe.
    pub async fn new_approval_needed(
        &self,
        task_id: &TaskId,
        requests: ApprovalRequests,
    ) -> Result<Approval, OrchestratorError> {
        approval::needed_by_new(&self.services, task_id, requests).await
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

    /// The creation of a task, and when it was recorded.
    pub async fn creation(
        &self,
        task_id: &TaskId,
    ) -> Result<(TaskCreated, DateTime<Utc>), OrchestratorError> {
        tree_usage::creation(task_id, &*self.services.deps.journal).await
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

    /// Live deltas of all tasks. A slow watcher misses some and receives their number.
    pub fn deltas(&self) -> DeltaWatcher {
        self.services.deltas.watch_all()
    }

    /// The same, after the beginnings of the answers that tasks of this tree are receiving.
    pub fn tree_deltas(&self, root: &TaskId) -> DeltaWatcher {
        self.services.deltas.watch_tree(root)
    }

    /// Live deltas of one task, after the beginning of the answer that it is receiving. A slow watcher misses some and receives their number.
    pub fn task_deltas(&self, task_id: &TaskId) -> DeltaWatcher {
        self.services.deltas.watch_task(task_id)
    }
}
