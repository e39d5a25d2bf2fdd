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

use crate::budget::tree::Tree;
use crate::dispatch::pending_call::{PendingCall, Wants};
use crate::dispatch::plan;
use crate::dispatch::refusal::Refusal;
use crate::orchestrator_error::OrchestratorError;
use crate::services::{Age, Inner, Prepared};
use crate::task::conversation::Conversation;
use crate::task::run_slots;
use crate::task::state::TaskState;
use crate::task::step::Work;

/// Maximum number of children that are created concurrently.
const CREATED_AT_ONCE: usize = 1024;

/// A child to be created.
pub(crate) struct Planned {
    pub(crate) created: TaskCreated,
    pub(crate) message: UserMessage,
}

impl Work {
    /// Creates children under their recorded ids and starts them. A child that can no longer run is
    /// created as failed.
    pub(crate) async fn raise(
        &mut self,
        children: Vec<(TaskId, Result<Planned, Refusal>)>,
    ) -> Result<(), OrchestratorError> {
        let seq = self.state.seq;
        let state = &self.state;
        let (inner, trees) = (&self.inner, &self.trees);
        let births = children.into_iter().map(|(task_id, planned)| async move {
            let planned = match planned {
                Ok(mut planned) => {
                    if let Some(history) = &mut planned.created.history {
                        history.seq = seq;
                    }
                    planned
                }
                Err(refusal) => return stillborn(inner, state, task_id, &refusal).await,
            };
            birth(inner, state, trees, task_id, planned).await
        });
        let mut births = std::pin::pin!(stream::iter(births).buffer_unordered(CREATED_AT_ONCE));
        while let Some(born) = births.next().await {
            born?;
        }
        Ok(())
    }

    /// Registers again what the task waits for, after a restart.
    pub(crate) async fn rejoin(&mut self) -> Result<(), OrchestratorError> {
        let (flights, detached) = (self.state.flights.values(), self.state.detached.values());
        let mut awaited: Vec<TaskId> = flights.flat_map(PendingCall::tasks).cloned().collect();
        awaited.extend(detached.cloned());
        let me = self.state.task_id.clone();
        let unknown = self.inner.kin.unknown(&me, &awaited);
        for flight in self.state.flights.values() {
            match flight.until() {
                _ if !unknown.is_empty() => self.expect(flight),
                Some(until) => self.inner.watch_task(until, me.clone()),
                None => {}
            }
        }
        if unknown.is_empty() {
            return Ok(());
        }
        let detached: Vec<TaskId> = self.state.detached.values().cloned().collect();
        self.inner.kin.expect(&me, &detached, Wants::EACH, &self.trees);
        let there = self.inner.tree_without_orphans(self.root()).await?;
        let mut missing = HashSet::new();
        for task in unknown {
            match there.get(&task) {
                Some(summary) => self.inner.rejoin(&me, summary).await?,
                None => {
                    missing.insert(task);
                }
            }
        }
        self.raise_missing(&missing).await
    }

    /// Creates the children that were recorded and never created.
    async fn raise_missing(&mut self, missing: &HashSet<TaskId>) -> Result<(), OrchestratorError> {
        if missing.is_empty() {
            return Ok(());
        }
        let mut lost = Vec::new();
        for (call_id, flight) in &self.state.flights {
            let PendingCall::Children { children, .. } = flight else { continue };
            let planned = match self.call_of(call_id).map(|call| self.plan(&call)) {
                Some(Ok((_, planned))) => planned.into_iter().map(Ok).collect(),
                Some(Err(refusal)) => children.iter().map(|_| Err(refusal.clone())).collect(),
                None => Vec::new(),
            };
            let named = children.iter().cloned().zip(planned);
            lost.extend(named.filter(|(child, _): &(TaskId, _)| missing.contains(child)));
        }
        self.raise(lost).await
    }
}

/// Creates a child and starts it.
async fn birth(
    inner: &Arc<Inner>,
    parent: &TaskState,
    trees: &[Arc<Tree>],
    task_id: TaskId,
    planned: Planned,
) -> Result<(), OrchestratorError> {
    let Planned { created, message } = planned;
    let at = inner.world.clock.now();
    let before = match &created.history {
        Some(_) => parent.conversation.clone(),
        None => Conversation::default(),
    };
    let mut behind: Vec<EventBody> = vec![MessageAppended::new(message).into()];
    let mut thinking = None;
    if created.runner.is_none() {
        // Running and thinking from the beginning: one append in place of two.
        let agent_id = AgentId::from(inner.world.ids.next());
        behind.push(StatusChanged::new(TaskStatus::Running).into());
        let (from, to) = (AgentState::Idle, AgentState::Thinking);
        behind.push(StateChanged { agent_id, from, to }.into());
        thinking = Some(agent_id);
    }
    let mut state = TaskState::created(task_id.clone(), created.clone(), at, before);
    for body in &behind {
        state.apply(body);
    }
    let tree = inner.trees.share(Tree::sprout(task_id.clone(), &created));
    let trees = std::iter::once(tree).chain(trees.iter().cloned()).collect();
    // Before the task becomes visible: the first run or cancel finds the cached state.
    inner.prepare(task_id.clone(), Prepared { state, trees, thinking, age: Age::New });
    let born = create(inner, &task_id, created, behind).await;
    if !matches!(born, Ok(true)) {
        inner.take_prepared(&task_id);
        return born.map(drop);
    }
    run_slots::start(inner, &task_id);
    Ok(())
}

/// Creates a child that failed before it could run.
async fn stillborn(
    inner: &Arc<Inner>,
    parent: &TaskState,
    task_id: TaskId,
    refusal: &Refusal,
) -> Result<(), OrchestratorError> {
    let session_id = SessionId::from(inner.world.ids.next());
    let root = parent.created.root.clone().unwrap_or_else(|| parent.task_id.clone());
    let created = TaskCreated {
        parent: Some(parent.task_id.clone()),
        root: Some(root),
        depth: parent.created.depth + 1,
        payer: parent.created.payer.clone(),
        ..TaskCreated::new(plan::AD_HOC, session_id)
    };
    let detail = json!({ "code": "refused", "error": refusal.to_string() });
    let failed = StatusChanged { detail: Some(detail), ..StatusChanged::new(TaskStatus::Failed) };
    create(inner, &task_id, created, vec![failed.into()]).await.map(drop)
}

/// Returns false when the child already exists.
async fn create(
    inner: &Arc<Inner>,
    task_id: &TaskId,
    created: TaskCreated,
    behind: Vec<EventBody>,
) -> Result<bool, OrchestratorError> {
    let append = Append {
        task_id: task_id.clone(),
        expected: Expected::NoTask,
        at: inner.world.clock.now(),
        events: std::iter::once(created.into()).chain(behind).collect(),
        key: None,
    };
    match inner.append(append).await {
        Ok(_) => Ok(true),
        Err(JournalError::Stale { .. } | JournalError::Ended { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
