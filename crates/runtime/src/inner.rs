//! What is behind the handle.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use antiphon_core::port::{
    Append, Appended, Expected, JournalError, Read, TaskQuery, TaskSelector,
};
use antiphon_core::{
    AgentId, AgentState, EventBody, HistoryRef, LiveAgent, MessageQueued, Position, Provider,
    TaskId, TaskStatus, TaskSummary, WaitingFor,
};
use chrono::{DateTime, Utc};
use serde_json::Value;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admission::Put;
use crate::budget::{Budget, RuntimeConfig};
use crate::conversation::Conversation;
use crate::deadlines::Deadlines;
use crate::delta::Deltas;
use crate::flight::Outcome;
use crate::follow::Notifier;
use crate::kin::Waiters;
use crate::mailroom::InboxQuotas;
use crate::orchestrator_error::OrchestratorError;
use crate::purse::SpendCache;
use crate::requests::Outstanding;
use crate::roster::Roster;
use crate::running::{self, RunSlots};
use crate::saying::said_as;
use crate::state::{ReplayError, TaskState};
use crate::tail;
use crate::tree::{Tree, Trees};
use crate::world::RuntimeDeps;

/// Tasks that one history goes through, at most.
const HISTORY_TASKS_MAX: usize = 10_000;

/// Standing agents that are kept at hand while they do nothing. One more, and all are let go.
const AT_HAND_MAX: usize = 4096;

/// Tasks above one another that are looked at, at most.
pub(crate) const DEPTH_MAX: usize = 1024;

/// A task that has just been created: nobody has to read it from the journal.
pub(crate) struct Prepared {
    pub(crate) state: TaskState,
    pub(crate) trees: Vec<Arc<Tree>>,
    /// The agent that thinks about it, if it was created thinking.
    pub(crate) thinking: Option<AgentId>,
    pub(crate) age: Age,
}

/// What is known of a task without a look at the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Age {
    /// Everything: it has just been created.
    New,
    /// Everything up to where it was left.
    Left,
}

pub(crate) struct Inner {
    pub(crate) world: RuntimeDeps,
    pub(crate) budget: Budget,
    pub(crate) purse: SpendCache,
    pub(crate) kin: Waiters,
    pub(crate) roster: Roster,
    pub(crate) mailroom: InboxQuotas,
    pub(crate) outstanding: Outstanding,
    prepared: Mutex<HashMap<TaskId, Prepared>>,
    /// Rings when a task comes to rest.
    pub(crate) rested: Notify,
    pub(crate) places: RunSlots,
    pub(crate) trees: Trees,
    pub(crate) tracker: TaskTracker,
    /// Fires when everything should come to rest; what is not done goes on another time.
    pub(crate) stop: CancellationToken,
    /// Fires when what did not come to rest is cut off.
    pub(crate) kill: CancellationToken,
    pub(crate) bells: Notifier,
    pub(crate) deltas: Arc<Deltas>,
    pub(crate) deadlines: Deadlines,
    /// Set once somebody watches the deadlines.
    pub(crate) watched: OnceLock<()>,
}

impl Inner {
    pub(crate) fn new(means: RuntimeConfig) -> Self {
        let RuntimeConfig { world, budget } = means;
        Self {
            world,
            budget,
            purse: SpendCache::default(),
            kin: Waiters::default(),
            roster: Roster::default(),
            mailroom: InboxQuotas::default(),
            outstanding: Outstanding::default(),
            prepared: Mutex::default(),
            rested: Notify::new(),
            places: RunSlots::default(),
            trees: Trees::default(),
            tracker: TaskTracker::new(),
            stop: CancellationToken::new(),
            kill: CancellationToken::new(),
            bells: Notifier::new(),
            deltas: Arc::new(Deltas::new()),
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
        let moved: Vec<EventBody> = append.events.iter().filter(|b| is_mail(b)).cloned().collect();
        let (task_id, counted) =
            (append.task_id.clone(), self.mailroom.expect(&append.task_id, &moved));
        // Kept at hand only when somebody follows the task.
        let followed = self.bells.tower(&task_id);
        let followed = followed.map(|tower| (tower, append.at, append.events.clone()));
        let appended = self.write(append).await;
        if appended.as_ref().map_or(true, |appended| appended.deduplicated) {
            self.mailroom.release(&task_id, &counted);
        }
        let appended = appended?;
        if let Some((tower, at, bodies)) = followed
            && !appended.deduplicated
        {
            tower.tail.keep(tail::written(&appended, &task_id, at, bodies));
        }
        self.bells.ring(&appended.task_id, appended.position);
        if appended.deduplicated {
            return Ok(appended);
        }
        self.mailroom.note(&appended.task_id, &moved);
        if let Some(outcome) = ended {
            self.tell(&appended.task_id, &outcome);
            self.retire(&appended.task_id, &outcome);
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

    /// A task that is about to be worked on: as it was left, with what was written since, or from
    /// the journal.
    pub(crate) async fn prepared(&self, task_id: &TaskId) -> Result<Prepared, OrchestratorError> {
        if let Some(mut prepared) = self.take_prepared(task_id)
            && (prepared.age == Age::New || self.bring_to_now(&mut prepared.state).await?)
        {
            return Ok(prepared);
        }
        let state = self.load(task_id).await?;
        let trees = self.trees.of(&state, &*self.world.journal).await?;
        Ok(Prepared { state, trees, thinking: None, age: Age::Left })
    }

    /// Keeps a standing agent at hand that is left, so that it need not be read again when it is
    /// woken.
    pub(crate) fn keep_at_hand(&self, state: TaskState, trees: Vec<Arc<Tree>>) {
        if !state.created.resident || self.stop.is_cancelled() {
            return;
        }
        let mut prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        if prepared.len() >= AT_HAND_MAX {
            // Those that were just created are taken up in a moment.
            prepared.retain(|_, kept| kept.age == Age::New);
        }
        let task_id = state.task_id.clone();
        prepared.insert(task_id, Prepared { state, trees, thinking: None, age: Age::Left });
    }

    /// Adds what was written since a task was last looked at. Says whether that can follow.
    pub(crate) async fn bring_to_now(
        &self,
        state: &mut TaskState,
    ) -> Result<bool, OrchestratorError> {
        loop {
            let (task_id, after) = (Some(state.task_id.clone()), state.position);
            let read = Read { task_id, after, limit: NonZeroUsize::MAX };
            let page = self.world.journal.read(read).await?;
            if page.events.is_empty() {
                return Ok(true);
            }
            if !page.events.iter().all(|event| state.follow(event)) {
                return Ok(false);
            }
        }
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
        } else if task.waiting_for.is_some_and(|what| what != WaitingFor::Budget) {
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
        let key = Some(said_as(task_id, queued.id));
        self.unfinished(task_id).await?;
        match self.put(task_id, queued, key).await? {
            Put::There { .. } => Ok(()),
            Put::Full(_) => Err(OrchestratorError::MailboxFull { task_id: task_id.clone() }),
            Put::Ended => self.unfinished(task_id).await.map(drop),
        }
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
        let query =
            TaskQuery { which: TaskSelector::One(task_id.clone()), limit: NonZeroUsize::MIN };
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
        if !self.uses_run_provider(state.created.runner.as_ref()) {
            return Ok(());
        }
        let task_id = || state.task_id.clone();
        let refuse = |reason| OrchestratorError::NoModel { task_id: task_id(), reason };
        self.provider(state).map(drop).map_err(refuse)
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

/// Whether an inbox is another one behind it.
fn is_mail(body: &EventBody) -> bool {
    let takes = |body: &EventBody| matches!(body, EventBody::MessageAppended(said) if said.queued.is_some());
    matches!(body, EventBody::MessageQueued(_) | EventBody::Replied(_))
        || takes(body)
        || body.ends_task()
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
