//! Children of a task: created once, under the ids that `dispatched` recorded, and joined again after
//! a restart.

use std::collections::HashSet;
use std::sync::Arc;

use antiphon_core::port::{Append, Expected, JournalError};
use antiphon_core::{
    AgentId, AgentState, EventBody, MessageAppended, SessionId, StateChanged, StatusChanged,
    TaskCreated, TaskId, TaskStatus, UserMessage,
};
use futures_util::{StreamExt, stream};
use serde_json::json;

use crate::budget::tree_usage::Tree;
use crate::dispatch::child_plan;
use crate::dispatch::child_tools::LeftOut;
use crate::dispatch::pending_call::{PendingCall, WaitGoal};
use crate::dispatch::refusal::DispatchRefusal;
use crate::dispatch::wake_parent;
use crate::orchestrator_error::OrchestratorError;
use crate::services::Services;
use crate::task::control::cancel;
use crate::task::schedule::deadlines;
use crate::task::schedule::supervise;
use crate::task::state::TaskState;
use crate::task::state::conversation::Conversation;
use crate::task::state::state_cache::{AfterEnd, CachedTask, Freshness};
use crate::task::step::TaskRun;

/// Maximum number of children that are created concurrently.
const CREATED_AT_ONCE: usize = 1024;

/// A child to be created.
pub(crate) struct PlannedChild {
    pub(crate) created: TaskCreated,
    pub(crate) message: UserMessage,
    /// Tools that it was to have and does not get.
    pub(crate) left_out: Vec<LeftOut>,
}

impl TaskRun {
    /// Creates children under their recorded ids and starts them. A child that can no longer run is
    /// created as failed.
    pub(crate) async fn create_children(
        &mut self,
        children: Vec<(TaskId, Result<PlannedChild, DispatchRefusal>)>,
    ) -> Result<(), OrchestratorError> {
        let seq = self.state.seq;
        let state = &self.state;
        let (services, trees) = (&self.services, &self.trees);
        let creations = children.into_iter().map(|(task_id, planned)| async move {
            let planned = match planned {
                Ok(mut planned) => {
                    if let Some(history) = &mut planned.created.history {
                        history.seq = seq;
                    }
                    planned
                }
                Err(refusal) => {
                    return create_failed_child(services, state, task_id, &refusal).await;
                }
            };
            create_child(services, state, trees, task_id, planned).await
        });
        let mut creations =
            std::pin::pin!(stream::iter(creations).buffer_unordered(CREATED_AT_ONCE));
        while let Some(created) = creations.next().await {
            created?;
        }
        Ok(())
    }

    /// Registers again what the task waits for, after a restart.
    pub(crate) async fn rejoin(&mut self) -> Result<(), OrchestratorError> {
        let (pending_calls, detached) =
            (self.state.pending_calls.values(), self.state.detached.values());
        let mut awaited: Vec<TaskId> =
            pending_calls.flat_map(PendingCall::tasks).cloned().collect();
        awaited.extend(detached.cloned());
        let waiter = self.state.task_id.clone();
        let unknown = self.services.waiters.not_registered(&waiter, &awaited);
        for pending_call in self.state.pending_calls.values() {
            match pending_call.until() {
                _ if !unknown.is_empty() => self.wait_for_call(pending_call),
                // This run sees that it has passed: another one would see the same, again and again.
                Some(until) if self.services.time.has_passed(until) => {}
                Some(until) => deadlines::watch_task(&self.services, until, waiter.clone()),
                None => {}
            }
        }
        if unknown.is_empty() {
            return Ok(());
        }
        let detached: Vec<TaskId> = self.state.detached.values().cloned().collect();
        self.services.waiters.register(&waiter, &detached, WaitGoal::EACH, &self.trees);
        let existing = cancel::tree_without_orphans(&self.services, self.root()).await?;
        let mut missing = HashSet::new();
        for task in unknown {
            match existing.get(&task) {
                Some(summary) => wake_parent::rejoin(&self.services, &waiter, summary).await?,
                None => {
                    missing.insert(task);
                }
            }
        }
        self.create_missing_children(&missing).await
    }

    /// Creates the children that were recorded and never created.
    async fn create_missing_children(
        &mut self,
        missing: &HashSet<TaskId>,
    ) -> Result<(), OrchestratorError> {
        if missing.is_empty() {
            return Ok(());
        }
        let mut lost = Vec::new();
        for (call_id, pending_call) in &self.state.pending_calls {
            let PendingCall::Children { children, .. } = pending_call else { continue };
            let planned = match self.find_call(call_id) {
                Some(call) => match self.plan(&call).await {
                    Ok((_, planned)) => planned.into_iter().map(Ok).collect(),
                    Err(refusal) => children.iter().map(|_| Err(refusal.clone())).collect(),
                },
                None => Vec::new(),
            };
            let named = children.iter().cloned().zip(planned);
            lost.extend(named.filter(|(child, _): &(TaskId, _)| missing.contains(child)));
        }
        self.create_children(lost).await
    }
}

/// Creates a child and starts it.
async fn create_child(
    services: &Arc<Services>,
    parent: &TaskState,
    trees: &[Arc<Tree>],
    task_id: TaskId,
    planned: PlannedChild,
) -> Result<(), OrchestratorError> {
    let PlannedChild { created, message, .. } = planned;
    let at = services.deps.clock.now();
    let before = match &created.history {
        Some(_) => parent.conversation.clone(),
        None => Conversation::default(),
    };
    let mut behind: Vec<EventBody> = vec![MessageAppended::new(message).into()];
    let mut thinking = None;
    if created.runner.is_none() {
        // Running and thinking from the beginning: one append in place of two.
        let agent_id = AgentId::from(services.deps.ids.random());
        behind.push(StatusChanged::new(TaskStatus::Running).into());
        let (from, to) = (AgentState::Idle, AgentState::Thinking);
        behind.push(StateChanged::new(agent_id, from, to).into());
        thinking = Some(agent_id);
    }
    let mut state = TaskState::created(task_id.clone(), created.clone(), at, before);
    for body in &behind {
        state.apply(body);
    }
    let tree = services.trees.register(Tree::for_new_task(task_id.clone(), &created));
    let trees = std::iter::once(tree).chain(trees.iter().cloned()).collect();
    // Before the task becomes visible: the first run or cancel finds the cached state.
    let (freshness, after_end) = (Freshness::Complete, AfterEnd::of(&created));
    let task = CachedTask { state, trees, thinking, freshness, after_end };
    services.cache.insert(task_id.clone(), task);
    let created = create(services, &task_id, created, behind).await;
    if !matches!(created, Ok(true)) {
        services.cache.take(&task_id);
        return created.map(drop);
    }
    supervise::start(services, &task_id);
    Ok(())
}

/// Creates a child that failed before it could run.
async fn create_failed_child(
    services: &Arc<Services>,
    parent: &TaskState,
    task_id: TaskId,
    refusal: &DispatchRefusal,
) -> Result<(), OrchestratorError> {
    let session_id = SessionId::from(services.deps.ids.next());
    let root = parent.created.root.clone().unwrap_or_else(|| parent.task_id.clone());
    let created = TaskCreated {
        parent: Some(parent.task_id.clone()),
        root: Some(root),
        depth: parent.created.depth + 1,
        payer: parent.created.payer.clone(),
        ..TaskCreated::new(child_plan::AD_HOC, session_id)
    };
    let detail = json!({ "code": "refused", "error": refusal.to_string() });
    let failed = StatusChanged { detail: Some(detail), ..StatusChanged::new(TaskStatus::Failed) };
    create(services, &task_id, created, vec![failed.into()]).await.map(drop)
}

/// Returns false when the child already exists.
async fn create(
    services: &Arc<Services>,
    task_id: &TaskId,
    created: TaskCreated,
    behind: Vec<EventBody>,
) -> Result<bool, OrchestratorError> {
    let append = Append {
        task_id: task_id.clone(),
        expected: Expected::NoTask,
        at: services.deps.clock.now(),
        events: std::iter::once(created.into()).chain(behind).collect(),
        key: None,
    };
    match services.append(append).await {
        Ok(_) => Ok(true),
        Err(JournalError::Stale { .. } | JournalError::Ended { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
