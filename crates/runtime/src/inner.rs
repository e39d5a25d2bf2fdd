//! What is behind the handle.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use antiphon_core::port::{
    Append, Appended, ApprovalQuery, Expected, IdempotencyKey, JournalError, Read, TaskQuery,
    Which, WhichApprovals,
};
use antiphon_core::{
    AgentState, Approval, ApprovalDecided, ApprovalId, ApprovalStatus, Decision, EventBody,
    HistoryRef, LiveAgent, MessageQueued, Position, Provider, RunnerConfig, StatusChanged, TaskId,
    TaskStatus, TaskSummary,
};
use chrono::{DateTime, Utc};
use futures_util::{StreamExt, stream};
use serde_json::Value;
use tokio::sync::{Notify, broadcast};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::conversation::Conversation;
use crate::deadlines::{Deadlines, Due};
use crate::delta::Delta;
use crate::flight::{Flight, Outcome};
use crate::follow::Bells;
use crate::kin::Kin;
use crate::orchestrator::OrchestratorError;
use crate::running::{self, Places};
use crate::state::{ReplayError, TaskState};
use crate::tree::{self, Tree, Trees};
use crate::world::World;

/// Deltas that a slow watcher may be behind before it misses some.
const DELTAS_KEPT: usize = 4096;

/// Tasks that one history goes through, at most.
const HISTORY_TASKS_MAX: usize = 10_000;

/// Tasks above one another that are looked at, at most.
pub(crate) const DEPTH_MAX: usize = 1024;

/// Tasks that are canceled at a time.
const CANCELED_AT_ONCE: usize = 256;

/// Tasks of a tree that are looked at, at most.
const TREE_TASKS_MAX: NonZeroUsize = NonZeroUsize::new(1_000_000).unwrap();

/// A task that has just been created: nobody has to read it from the journal.
pub(crate) struct Prepared {
    pub(crate) state: TaskState,
    pub(crate) trees: Vec<Arc<Tree>>,
}

pub(crate) struct Inner {
    pub(crate) world: World,
    pub(crate) kin: Kin,
    prepared: Mutex<HashMap<TaskId, Prepared>>,
    /// Rings when a task comes to rest.
    pub(crate) rested: Notify,
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
            kin: Kin::default(),
            prepared: Mutex::default(),
            rested: Notify::new(),
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

    /// Writes, and tells whoever watches or waits.
    pub(crate) async fn append(self: &Arc<Self>, append: Append) -> Result<Appended, JournalError> {
        let ended = append.events.last().and_then(|last| ended(last, append.at));
        let appended = self.world.journal.append(append).await?;
        self.bells.ring(&appended.task_id, appended.position);
        if let Some(outcome) = ended.filter(|_| !appended.deduplicated) {
            self.tell(&appended.task_id, &outcome);
        }
        Ok(appended)
    }

    /// Tells those who wait for a task how it ended. They are told once.
    fn tell(self: &Arc<Self>, task_id: &TaskId, outcome: &Outcome) {
        for waiting in self.kin.ended(task_id, outcome) {
            running::start(self, &waiting);
        }
        self.kin.forget(task_id);
    }

    pub(crate) fn tell_end(self: &Arc<Self>, state: &TaskState) {
        let now = self.world.clock.now();
        self.tell(&state.task_id, &outcome(state.status, state.detail.as_ref(), now));
    }

    pub(crate) fn prepare(&self, task_id: TaskId, prepared: Prepared) {
        let mut waiting = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.insert(task_id, prepared);
    }

    pub(crate) fn take_prepared(&self, task_id: &TaskId) -> Option<Prepared> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner).remove(task_id)
    }

    /// How a task that has ended did.
    pub(crate) async fn outcome(&self, task: &TaskSummary) -> Result<Outcome, OrchestratorError> {
        let state = self.load(&task.task_id).await?;
        let ended_at = task.ended_at.unwrap_or(task.last_event_at);
        Ok(outcome(state.status, state.detail.as_ref(), ended_at))
    }

    /// Has `who`, which waits for a task, learn how it ended, or has that task worked on.
    pub(crate) async fn rejoin(
        self: &Arc<Self>,
        who: &TaskId,
        task: &TaskSummary,
    ) -> Result<(), OrchestratorError> {
        if task.status.is_terminal() {
            self.kin.note(who, &task.task_id, self.outcome(task).await?);
        } else if task.waiting_for.is_some() {
            self.watch_time(&task.task_id).await?;
        } else {
            running::start(self, &task.task_id);
        }
        Ok(())
    }

    /// Says something to a task that has not ended, once, and has it looked at.
    pub(crate) async fn queue(
        self: &Arc<Self>,
        task_id: &TaskId,
        queued: MessageQueued,
    ) -> Result<(), OrchestratorError> {
        let key = Some(IdempotencyKey(format!("said:{}:{}", task_id, queued.id)));
        loop {
            let summary = self.unfinished(task_id).await?;
            if self.load(task_id).await?.queue.len() >= crate::QUEUED_MAX {
                return Err(OrchestratorError::MailboxFull { task_id: task_id.clone() });
            }
            let events = vec![queued.clone().into()];
            if self.append_keyed(&summary, events, key.clone()).await? {
                running::start(self, task_id);
                return Ok(());
            }
        }
    }

    /// Ends tasks and everything below them. When this returns, the journal says so.
    pub(crate) async fn cancel_all(
        self: &Arc<Self>,
        tasks: Vec<TaskId>,
    ) -> Result<(), OrchestratorError> {
        for task_id in &tasks {
            self.cancel_one(task_id).await?;
        }
        for task_id in tasks {
            self.cancel_below(&task_id).await?;
        }
        Ok(())
    }

    /// Ends everything below a task that can dispatch nobody any more.
    pub(crate) async fn cancel_below(
        self: &Arc<Self>,
        task_id: &TaskId,
    ) -> Result<(), OrchestratorError> {
        let root = self.summary(task_id).await?.root;
        loop {
            let mut below = self.below(task_id, &root).await?;
            below.retain(|task| !task.status.is_terminal());
            if below.is_empty() {
                return Ok(());
            }
            let ends = below.into_iter().map(|task| {
                let inner = Arc::clone(self);
                async move { inner.cancel_one(&task.task_id).await }
            });
            let mut ends = std::pin::pin!(stream::iter(ends).buffer_unordered(CANCELED_AT_ONCE));
            while let Some(ended) = ends.next().await {
                ended?;
            }
        }
    }

    /// Everything below a task, the oldest first.
    pub(crate) async fn below(
        &self,
        task_id: &TaskId,
        root: &TaskId,
    ) -> Result<Vec<TaskSummary>, OrchestratorError> {
        let query = TaskQuery { which: Which::Tree(root.clone()), limit: TREE_TASKS_MAX };
        let tasks = self.world.journal.tasks(query).await?;
        let inside: HashSet<TaskId> = tree::descent(task_id, &tasks).into_iter().cloned().collect();
        let mut below: Vec<TaskSummary> = tasks
            .into_iter()
            .filter(|task| task.task_id != *task_id && inside.contains(&task.task_id))
            .collect();
        below.reverse();
        Ok(below)
    }

    /// Ends one task, if it has not ended.
    pub(crate) async fn cancel_one(
        self: &Arc<Self>,
        task_id: &TaskId,
    ) -> Result<(), OrchestratorError> {
        match self.cancel(task_id).await {
            Ok(()) | Err(OrchestratorError::Ended { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Ends one task: its model call, its tools, and itself.
    pub(crate) async fn cancel(
        self: &Arc<Self>,
        task_id: &TaskId,
    ) -> Result<(), OrchestratorError> {
        let mut asked = false;
        if self.places.find(task_id).is_none() && self.is_followed(task_id).await? {
            // Whoever works on it elsewhere is told by whoever follows it.
            running::start(self, task_id);
        }
        loop {
            if let Some(running) = self.places.find(task_id) {
                running.cancel.cancel();
                running.left.cancelled().await;
                asked = true;
                continue;
            }
            let summary = self.summary(task_id).await?;
            if asked && summary.status == TaskStatus::Canceled {
                return Ok(());
            }
            if summary.status.is_terminal() {
                let (task_id, status) = (task_id.clone(), summary.status);
                return Err(OrchestratorError::Ended { task_id, status });
            }
            let canceled = vec![StatusChanged::new(TaskStatus::Canceled).into()];
            if self.append_behind(&summary, canceled).await? {
                self.take_prepared(task_id);
                self.world.tools.release(task_id).await;
                return Ok(());
            }
        }
    }

    /// Writes behind what is known of a task. Says whether it did: somebody else may have been
    /// first.
    pub(crate) async fn append_behind(
        self: &Arc<Self>,
        summary: &TaskSummary,
        events: Vec<EventBody>,
    ) -> Result<bool, OrchestratorError> {
        self.append_keyed(summary, events, None).await
    }

    async fn append_keyed(
        self: &Arc<Self>,
        summary: &TaskSummary,
        events: Vec<EventBody>,
        key: Option<IdempotencyKey>,
    ) -> Result<bool, OrchestratorError> {
        let append = Append {
            task_id: summary.task_id.clone(),
            expected: Expected::At(summary.seq),
            at: self.world.clock.now(),
            events,
            key,
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

    /// Who answers for a task; an error is what to tell the person.
    pub(crate) fn provider(&self, state: &TaskState) -> Result<Arc<dyn Provider>, String> {
        let created = &state.created;
        let model = created.model.as_ref().ok_or_else(|| "it names none".to_owned())?;
        self.world.models.provider(model, &created.fallbacks, created.route.as_ref())
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
        self.watch(at, Due::Approval(approval_id));
    }

    /// Has a task looked at when it is time.
    pub(crate) fn watch_task(self: &Arc<Self>, at: DateTime<Utc>, task_id: TaskId) {
        self.watch(at, Due::Task(task_id));
    }

    fn watch(self: &Arc<Self>, at: DateTime<Utc>, due: Due) {
        self.deadlines.add(at, due);
        if self.watched.set(()).is_err() {
            return;
        }
        let inner = Arc::clone(self);
        self.tracker.spawn(async move {
            loop {
                let due = tokio::select! {
                    due = inner.deadlines.next(&inner.world.clock) => due,
                    () = inner.stop.cancelled() => return,
                };
                match due {
                    Due::Approval(approval_id) => inner.expire(approval_id).await,
                    Due::Task(task_id) => running::start(&inner, &task_id),
                }
            }
        });
    }

    async fn expire(self: &Arc<Self>, expired: ApprovalId) {
        match self.decide(&expired, Decision::Expire, "the clock", None).await {
            // Somebody answered, or its task ended.
            Ok(())
            | Err(
                OrchestratorError::Decided { .. }
                | OrchestratorError::NoApproval { .. }
                | OrchestratorError::Ended { .. },
            ) => {}
            Err(error) => {
                tracing::warn!(approval.id = %expired, %error, "could not expire");
                let later = self.world.clock.now() + chrono::TimeDelta::seconds(5);
                self.deadlines.add(later, Due::Approval(expired));
            }
        }
    }

    /// Whether another orchestrator works on a task that has not ended.
    async fn is_followed(&self, task_id: &TaskId) -> Result<bool, OrchestratorError> {
        if self.world.runners.is_empty() || self.summary(task_id).await?.status.is_terminal() {
            return Ok(false);
        }
        let (created, _) = tree::beginning(task_id, &*self.world.journal).await?;
        Ok(self.is_orchestrated(created.runner.as_ref()))
    }

    /// Whether a runner is an orchestrator of its own.
    pub(crate) fn is_orchestrated(&self, runner: Option<&RunnerConfig>) -> bool {
        let Some(config) = runner else { return false };
        let known = self.world.runners.iter().find(|known| known.kind() == config.kind);
        known.is_some_and(|known| known.is_orchestrator())
    }

    /// Has a task that waits looked at when its time is over.
    pub(crate) async fn watch_time(
        self: &Arc<Self>,
        task_id: &TaskId,
    ) -> Result<(), OrchestratorError> {
        let (created, at) = tree::beginning(task_id, &*self.world.journal).await?;
        if let Some(max) = created.limits.wall_clock_s_max {
            let until = at + chrono::TimeDelta::seconds(i64::from(max.get()));
            self.watch_task(until, task_id.clone());
        }
        Ok(())
    }

    /// Whether a task that nobody works on will be taken up when somebody else is done.
    pub(crate) fn waits_for_others(&self, state: &TaskState) -> bool {
        let client = |flight: &Flight| matches!(flight, Flight::External { .. });
        self.kin.waits(&state.task_id) || state.flights.values().any(client)
    }

    /// Whether nothing below a task, nor the task itself, can go on without somebody.
    pub(crate) async fn below_rests(&self, state: &TaskState) -> Result<Rests, OrchestratorError> {
        let root = state.created.root.as_ref().unwrap_or(&state.task_id);
        let mut below = self.below(&state.task_id, root).await?;
        below.retain(|task| !task.status.is_terminal());
        let asks = below.iter().any(|task| task.waiting_for.is_some());
        if below.iter().any(|task| self.places.is_taken(&task.task_id)) {
            return Ok(Rests::No { asks });
        }
        if asks {
            return Ok(Rests::ForSomebody);
        }
        let stopped = below.iter().find_map(|task| self.places.why(&task.task_id));
        Ok(stopped.map_or(Rests::No { asks }, Rests::Stopped))
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

/// What keeps everything below a task.
pub(crate) enum Rests {
    /// Somebody is at work, or will be.
    No {
        /// Others wait for somebody: when the last of those at work is done, everything rests.
        asks: bool,
    },
    /// Somebody has to do something.
    ForSomebody,
    /// It stopped before its end.
    Stopped(OrchestratorError),
}

/// How a task ended, if this ends it.
fn ended(body: &EventBody, at: DateTime<Utc>) -> Option<Outcome> {
    let EventBody::StatusChanged(change) = body else { return None };
    let terminal = change.status.is_terminal();
    terminal.then(|| outcome(change.status, change.detail.as_ref(), at))
}

fn outcome(status: TaskStatus, detail: Option<&Value>, ended_at: DateTime<Utc>) -> Outcome {
    let content = detail.cloned().unwrap_or_else(|| Value::String(status.as_str().to_owned()));
    Outcome { status, content, ended_at }
}

/// What the oldest of these tasks goes on with.
fn history(chapters: &[(TaskId, Vec<antiphon_core::Event>)]) -> Option<HistoryRef> {
    let (_, events) = chapters.last()?;
    let EventBody::TaskCreated(created) = &events.first()?.body else { return None };
    created.history.clone()
}
