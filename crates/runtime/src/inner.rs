//! What is behind the handle.

use std::num::NonZeroUsize;
use std::sync::{Arc, OnceLock};

use antiphon_core::port::{
    Append, Appended, ApprovalQuery, Expected, JournalError, Read, TaskQuery, Which, WhichApprovals,
};
use antiphon_core::{
    AgentState, Approval, ApprovalDecided, ApprovalId, ApprovalStatus, Decision, EventBody,
    HistoryRef, LiveAgent, Position, Provider, StatusChanged, TaskId, TaskStatus, TaskSummary,
};
use chrono::{DateTime, Utc};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::conversation::Conversation;
use crate::deadlines::Deadlines;
use crate::delta::Delta;
use crate::follow::Bells;
use crate::orchestrator::OrchestratorError;
use crate::running::{self, Places};
use crate::state::{ReplayError, TaskState};
use crate::tree::Trees;
use crate::world::World;

/// Deltas that a slow watcher may be behind before it misses some.
const DELTAS_KEPT: usize = 4096;

/// Tasks that one history goes through, at most.
const HISTORY_TASKS_MAX: usize = 10_000;

/// Tasks of a tree that are looked at, at most.
const TREE_TASKS_MAX: NonZeroUsize = NonZeroUsize::new(1_000_000).unwrap();

pub(crate) struct Inner {
    pub(crate) world: World,
    pub(crate) places: Places,
    pub(crate) trees: Trees,
    pub(crate) tracker: TaskTracker,
    /// Fires when everything should come to rest; what is not done goes on another time.
    pub(crate) stop: CancellationToken,
    /// Fires when what did not come to rest is cut off.
    pub(crate) kill: CancellationToken,
    pub(crate) bells: Bells,
    pub(crate) deltas: broadcast::Sender<Delta>,
    pub(crate) deadlines: Deadlines,
    /// Set once somebody watches the deadlines.
    watched: OnceLock<()>,
}

impl Inner {
    pub(crate) fn new(world: World) -> Self {
        Self {
            world,
            places: Places::default(),
            trees: Trees::default(),
            tracker: TaskTracker::new(),
            stop: CancellationToken::new(),
            kill: CancellationToken::new(),
            bells: Bells::new(),
            deltas: broadcast::Sender::new(DELTAS_KEPT),
            deadlines: Deadlines::default(),
            watched: OnceLock::new(),
        }
    }

    /// Runs something that has to go on to its end, also when whoever asked stops waiting.
    pub(crate) async fn owned<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, OrchestratorError>> + Send + 'static,
    ) -> Result<T, OrchestratorError> {
        let fault = |_| JournalError::Unavailable { reason: "it was cut off".to_owned() };
        self.tracker.spawn(work).await.map_err(fault)?
    }

    pub(crate) async fn append(&self, append: Append) -> Result<Appended, JournalError> {
        let appended = self.world.journal.append(append).await?;
        self.bells.ring(&appended.task_id, appended.position);
        Ok(appended)
    }

    /// Writes behind what is known of a task. Says whether it did: somebody else may have been
    /// first.
    pub(crate) async fn append_behind(
        self: &Arc<Self>,
        summary: &TaskSummary,
        events: Vec<EventBody>,
    ) -> Result<bool, OrchestratorError> {
        let append = Append {
            task_id: summary.task_id.clone(),
            expected: Expected::At(summary.seq),
            at: self.world.clock.now(),
            events,
            key: None,
        };
        let inner = Arc::clone(self);
        self.owned(async move {
            match inner.append(append).await {
                Ok(_) => Ok(true),
                Err(JournalError::Stale { .. } | JournalError::Ended { .. }) => Ok(false),
                Err(error) => Err(error.into()),
            }
        })
        .await
    }

    pub(crate) async fn summary(&self, task_id: &TaskId) -> Result<TaskSummary, OrchestratorError> {
        let query = TaskQuery { which: Which::One(task_id.clone()), limit: NonZeroUsize::MIN };
        let found = self.world.journal.tasks(query).await?.into_iter().next();
        Ok(found.ok_or_else(|| ReplayError::NoTask { task_id: task_id.clone() })?)
    }

    /// A task that has not ended.
    pub(crate) async fn unfinished(
        &self,
        task_id: &TaskId,
    ) -> Result<TaskSummary, OrchestratorError> {
        let summary = self.summary(task_id).await?;
        if summary.status.is_terminal() {
            let (task_id, status) = (task_id.clone(), summary.status);
            return Err(OrchestratorError::Ended { task_id, status });
        }
        Ok(summary)
    }

    /// Everything a task dispatched, and what that dispatched, that has not ended: the deepest
    /// first.
    pub(crate) async fn descendants(
        &self,
        summary: &TaskSummary,
    ) -> Result<Vec<TaskId>, OrchestratorError> {
        let which = Which::Tree(summary.root.clone());
        let mut tree = self.world.journal.tasks(TaskQuery { which, limit: TREE_TASKS_MAX }).await?;
        // The oldest first: a parent is older than its children.
        tree.reverse();
        let mut below = vec![summary.task_id.clone()];
        let mut found = Vec::new();
        for task in tree {
            if task.parent.as_ref().is_some_and(|parent| below.contains(parent)) {
                below.push(task.task_id.clone());
                if !task.status.is_terminal() {
                    found.push(task.task_id);
                }
            }
        }
        found.reverse();
        Ok(found)
    }

    /// Who answers for a task; an error is what to tell the person.
    pub(crate) fn provider(&self, state: &TaskState) -> Result<Arc<dyn Provider>, String> {
        let created = &state.created;
        let model = created.model.as_ref().ok_or_else(|| "it names none".to_owned())?;
        self.world.models.provider(model, created.route.as_ref())
    }

    /// Whether somebody can answer for a task that is to be taken up.
    pub(crate) fn check_model(&self, state: &TaskState) -> Result<(), OrchestratorError> {
        let task_id = || state.task_id.clone();
        let refuse = |reason| OrchestratorError::NoModel { task_id: task_id(), reason };
        self.provider(state).map(drop).map_err(refuse)
    }

    /// Answers an approval, once.
    pub(crate) async fn decide(
        self: &Arc<Self>,
        approval_id: &ApprovalId,
        decision: Decision,
        by: &str,
        comment: Option<String>,
    ) -> Result<(), OrchestratorError> {
        loop {
            let approval = self.pending(approval_id).await?;
            if decision == Decision::AllowAlways {
                let kept = self.world.gate.remember(&approval.rule).await;
                kept.map_err(|reason| OrchestratorError::NotRemembered { reason })?;
            }
            let summary = self.unfinished(&approval.task_id).await?;
            let decided = ApprovalDecided {
                approval_id: approval_id.clone(),
                decision,
                by: by.to_owned(),
                comment: comment.clone(),
            };
            let mut events = vec![decided.into()];
            if summary.waiting_for == Some(antiphon_core::WaitingFor::Approval)
                && !self.asks_more(&approval).await?
            {
                events.push(StatusChanged::new(TaskStatus::Running).into());
            }
            // Two answers at once: the journal takes one, and the other looks again.
            if self.append_behind(&summary, events).await? {
                running::start(self, &approval.task_id);
                return Ok(());
            }
        }
    }

    async fn pending(&self, approval_id: &ApprovalId) -> Result<Approval, OrchestratorError> {
        let which = WhichApprovals::One(approval_id.clone());
        let query = ApprovalQuery { which, limit: NonZeroUsize::MIN };
        let found = self.world.journal.approvals(query).await?.into_iter().next();
        let approval_id = approval_id.clone();
        match found {
            None => Err(OrchestratorError::NoApproval { approval_id }),
            Some(approval) if approval.status == ApprovalStatus::Pending => Ok(approval),
            Some(Approval { status, .. }) => {
                Err(OrchestratorError::Decided { approval_id, status })
            }
        }
    }

    /// Whether its task waits for another answer too.
    async fn asks_more(&self, approval: &Approval) -> Result<bool, OrchestratorError> {
        let state = self.load(&approval.task_id).await?;
        let other = |question: &crate::state::Question| {
            question.answer.is_none() && question.approval_id != approval.approval_id
        };
        Ok(state.asked.values().any(other))
    }

    /// Has an approval answered by the clock when its time is over.
    pub(crate) fn watch_deadline(self: &Arc<Self>, at: DateTime<Utc>, approval_id: ApprovalId) {
        self.deadlines.add(at, approval_id);
        if self.watched.set(()).is_err() {
            return;
        }
        let inner = Arc::clone(self);
        self.tracker.spawn(async move {
            loop {
                let expired = tokio::select! {
                    expired = inner.deadlines.next(&inner.world.clock) => expired,
                    () = inner.stop.cancelled() => return,
                };
                match inner.decide(&expired, Decision::Expire, "the clock", None).await {
                    // Somebody answered, or its task ended.
                    Ok(())
                    | Err(
                        OrchestratorError::Decided { .. }
                        | OrchestratorError::NoApproval { .. }
                        | OrchestratorError::Ended { .. },
                    ) => {}
                    Err(error) => {
                        tracing::warn!(approval.id = %expired, %error, "could not expire");
                        let later = inner.world.clock.now() + chrono::TimeDelta::seconds(5);
                        inner.deadlines.add(later, expired);
                    }
                }
            }
        });
    }

    /// Where an agent really stands: the journal knows where it was last seen.
    pub(crate) fn bring_up_to_date(&self, agent: &mut LiveAgent) {
        match self.places.find(&agent.task_id) {
            None => agent.status.state = AgentState::Idle,
            Some(running) => {
                let silence = chrono::TimeDelta::from_std(running.silence()).unwrap_or_default();
                let beat = self.world.clock.now() - silence;
                agent.status.last_activity = agent.status.last_activity.max(beat);
            }
        }
    }

    /// A task from the journal, with what was said before it in other tasks.
    pub(crate) async fn load(&self, task_id: &TaskId) -> Result<TaskState, OrchestratorError> {
        let mut chapters = vec![(task_id.clone(), self.events(task_id).await?)];
        while let Some(HistoryRef { task_id: before, seq }) = history(&chapters) {
            if chapters.len() == HISTORY_TASKS_MAX {
                return Err(ReplayError::TooDeep { task_id: task_id.clone() }.into());
            }
            let mut events = self.events(&before).await?;
            events.retain(|event| event.seq <= seq);
            chapters.push((before, events));
        }
        let mut before = Conversation::default();
        while let Some((task_id, events)) = chapters.pop() {
            let state = TaskState::replay(&task_id, before, &events)?;
            if chapters.is_empty() {
                return Ok(state);
            }
            before = state.conversation;
        }
        Err(ReplayError::NoTask { task_id: task_id.clone() }.into())
    }

    async fn events(
        &self,
        task_id: &TaskId,
    ) -> Result<Vec<antiphon_core::Event>, OrchestratorError> {
        let mut events = Vec::new();
        let mut after = Position(0);
        loop {
            let read = Read { task_id: Some(task_id.clone()), after, limit: NonZeroUsize::MAX };
            let page = self.world.journal.read(read).await?;
            if page.events.is_empty() {
                return Ok(events);
            }
            after = page.next;
            events.extend(page.events);
        }
    }
}

/// What the oldest of these tasks goes on with.
fn history(chapters: &[(TaskId, Vec<antiphon_core::Event>)]) -> Option<HistoryRef> {
    let (_, events) = chapters.last()?;
    match &events.first()?.body {
        EventBody::TaskCreated(created) => created.history.clone(),
        EventBody::StatusChanged(_)
        | EventBody::StateChanged(_)
        | EventBody::MessageAppended(_)
        | EventBody::MessageQueued(_)
        | EventBody::ApprovalRequested(_)
        | EventBody::ApprovalDecided(_)
        | EventBody::ToolStarted(_)
        | EventBody::ToolRefused(_)
        | EventBody::ToolRequested(_)
        | EventBody::Dispatched(_)
        | EventBody::Awaited(_)
        | EventBody::HandedOver(_)
        | EventBody::Relayed(_)
        | EventBody::UsageRecorded(_)
        | EventBody::OutputRejected(_)
        | EventBody::Compacted(_) => None,
    }
}
