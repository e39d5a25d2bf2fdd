//! The handle: the only way in.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::port::{
    ApprovalQuery, ApprovalSelector, IdempotencyKey, Read, TaskQuery, TaskSelector,
};
use antiphon_core::{
    AgentName, Approval, ApprovalId, Decision, EventBody, HandlingMode, InteractionId, LiveAgent,
    Position, PriceTable, QueuedMessage, Replied, RunnerConfig, Runtime, Sender, SessionSummary,
    StatusChanged, TaskId, TaskStatus, TaskSummary, ToolCallId, ToolResult, UserMessage,
    WaitingFor,
};
use tokio::sync::broadcast;

use crate::admission::Starts;
use crate::arrival::{Arrival, Receipt};
use crate::begin::begin;
use crate::budget::RuntimeConfig;
use crate::delta::Delta;
use crate::external;
use crate::follow::Follower;
use crate::inner::Inner;
use crate::new_task::{ImportedConversation, NewTask};
use crate::orchestrator_error::OrchestratorError;
use crate::rest::Rests;
use crate::roster::{Started, is_resident};
use crate::running;
use crate::runtimes;
use crate::saying::TaskMessage;
use crate::state::TaskState;

/// Tasks that are listed at a time when all that were cut off are taken up.
const RECOVERED_MAX: NonZeroUsize = NonZeroUsize::new(1_000_000).unwrap();

/// How often it is looked whether a tree rests in which somebody is asked and others work. There is
/// nothing to hear: whoever is done tells its parent, who may be waiting for more.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Approvals that are looked at, at most.
const APPROVALS_MAX: NonZeroUsize = NonZeroUsize::new(100_000).unwrap();

/// The orchestrator. Cheap to clone; clones are the same one.
#[derive(Clone)]
pub struct Orchestrator {
    pub(crate) inner: Arc<Inner>,
}

/// What became of the tasks that were cut off.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recovered {
    /// Taken up again, the oldest first.
    pub begun: Vec<TaskId>,
    /// Still waiting for somebody.
    pub waiting: Vec<TaskId>,
    /// Ended, because whoever dispatched them had ended.
    pub ended: Vec<TaskId>,
}

impl Orchestrator {
    /// An orchestrator at rest: nothing is taken up before [`recover`](Self::recover) or
    /// [`resume`](Self::resume).
    pub fn new(means: impl Into<RuntimeConfig>) -> Self {
        Self { inner: Arc::new(Inner::new(means.into())) }
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// An orchestrator that keeps the books and never takes anything up: what is decided or said
    /// through it is in the journal, for the one who works on the task next.
    pub fn at_rest(means: impl Into<RuntimeConfig>) -> Self {
        let orchestrator = Self::new(means);
        orchestrator.inner.stop.cancel();
        orchestrator
    }

    /// Keeps a conversation that was held elsewhere, or that branches off from another one. It
    /// can be gone on with. Says in which task it is.
    pub async fn keep(&self, kept: ImportedConversation) -> Result<TaskId, OrchestratorError> {
        let append = kept.accept(&self.inner).await?;
        Ok(self.inner.append(append).await?.task_id)
    }

    /// Where an agent that may run in these places would run; `None` is here. An error says why
    /// nowhere.
    pub fn place(&self, runtimes: &[Runtime]) -> Result<Option<RunnerConfig>, String> {
        runtimes::choose(runtimes, &self.inner.world.runners)
    }

    /// Whether nothing bounds what is done there: only a person may start it.
    pub fn is_unrestricted(&self, runner: &RunnerConfig) -> bool {
        let mut runners = self.inner.world.runners.iter();
        runners.any(|known| known.kind() == runner.kind && known.is_unrestricted())
    }

    /// Whether a task could be accepted as it is.
    pub async fn check(&self, task: NewTask) -> Result<(), OrchestratorError> {
        task.accept(&self.inner).await.map(drop)
    }

    /// Accepts a task and begins to work on it. When this returns, the journal has it.
    pub async fn invoke(&self, task: NewTask) -> Result<TaskId, OrchestratorError> {
        let append = task.accept(&self.inner).await?;
        // On a future of its own: whoever asked may stop waiting, and what is written is begun.
        let inner = Arc::clone(&self.inner);
        self.inner.owned(async move { Ok(begin(&inner, append).await?.task_id) }).await
    }

    /// Does something to its end, also when whoever asked for it stops waiting.
    pub async fn see_through<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, OrchestratorError> {
        self.inner.owned(async move { Ok(work.await) }).await
    }

    /// Goes on with a task that was cut off or paused. One that runs already, runs; one that waits for
    /// the budget goes on only when more may be spent.
    pub async fn resume(&self, task_id: &TaskId) -> Result<(), OrchestratorError> {
        let state = self.task(task_id).await?;
        self.inner.check_model(&state)?;
        self.inner.check_wait(&state).await?;
        let root = self.inner.summary(task_id).await?.root;
        self.inner.tree_without_orphans(&root).await?;
        self.amend(task_id, |summary, state| {
            if summary.waiting_for != Some(WaitingFor::Resume) {
                return Ok(Vec::new());
            }
            let asked = state.asked.values().any(|question| question.answer.is_none());
            let change = if asked {
                let waiting_for = Some(WaitingFor::Approval);
                StatusChanged { waiting_for, ..StatusChanged::new(TaskStatus::InputRequired) }
            } else {
                StatusChanged::new(TaskStatus::Running)
            };
            Ok(vec![change.into()])
        })
        .await
    }

    /// Has a task worked on as it stands: one that was paused stays so.
    pub async fn take_up(&self, task_id: &TaskId) -> Result<(), OrchestratorError> {
        self.inner.check_model(&self.task(task_id).await?)?;
        self.inner.unfinished(task_id).await?;
        running::start(&self.inner, task_id);
        Ok(())
    }

    /// Lets a task rest at its next safe point, until it is resumed.
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

    /// Says something to a task in the user's own words. When this returns, the journal has it.
    pub async fn send(
        &self,
        task_id: &TaskId,
        message: UserMessage,
        mode: HandlingMode,
    ) -> Result<InteractionId, OrchestratorError> {
        self.say(task_id, TaskMessage { message, mode, from: Sender::User, key: None }).await
    }

    /// Takes in something for an agent. When this says `accepted`, the journal has it. An agent that
    /// was never started is started.
    pub async fn admit(&self, arrival: Arrival) -> Result<Receipt, OrchestratorError> {
        self.inner.admit(arrival, Starts::Yes).await
    }

    /// The same for somebody who acts for an agent: nobody is started.
    pub async fn admit_to_live(&self, arrival: Arrival) -> Result<Receipt, OrchestratorError> {
        self.inner.admit(arrival, Starts::No).await
    }

    /// Starts an agent: from now on it is there for what arrives.
    pub async fn start_agent(&self, name: &AgentName) -> Result<Started, OrchestratorError> {
        self.inner.start_agent(name).await
    }

    /// Stops an agent. What waits in its inbox waits until it is started again; requests are
    /// answered as failed. Says which task was stopped, if there was one; the same key stops
    /// once.
    pub async fn stop_agent(
        &self,
        name: &AgentName,
        key: Option<IdempotencyKey>,
    ) -> Result<Option<TaskId>, OrchestratorError> {
        self.inner.stop_agent(name, key).await
    }

    /// The newest task of an agent that was started, ended or not.
    pub async fn agent_task(
        &self,
        name: &AgentName,
    ) -> Result<Option<TaskSummary>, OrchestratorError> {
        self.inner.last_of(name).await
    }

    /// The final answer to a request, if there is one.
    pub async fn reply(
        &self,
        request: InteractionId,
    ) -> Result<Option<Replied>, OrchestratorError> {
        Ok(self.inner.world.journal.reply(request).await?)
    }

    /// Tells live agents that one of their peers is no longer defined.
    pub async fn unwire(&self, name: &AgentName) -> Result<(), OrchestratorError> {
        self.inner.unwire(name).await
    }

    /// Answers an approval. The first answer counts; when this returns, the journal has it, and its
    /// task goes on.
    pub async fn decide(
        &self,
        approval_id: &ApprovalId,
        decision: Decision,
        by: &str,
        comment: Option<String>,
    ) -> Result<(), OrchestratorError> {
        self.inner.decide(approval_id, decision, by, comment).await
    }

    /// Goes on with every task that was cut off, and with approvals that expire. What somebody
    /// dispatched who has ended since is ended too.
    pub async fn recover(&self) -> Result<Recovered, OrchestratorError> {
        let query = TaskQuery { which: TaskSelector::Unfinished, limit: RECOVERED_MAX };
        let mut recovered = Recovered::default();
        let mut unfinished = self.inner.world.journal.tasks(query).await?;
        unfinished.reverse();
        let there: HashSet<TaskId> = unfinished.iter().map(|task| task.task_id.clone()).collect();
        let (orphans, unfinished): (Vec<_>, Vec<_>) = unfinished
            .into_iter()
            .partition(|task| task.parent.as_ref().is_some_and(|parent| !there.contains(parent)));
        recovered.ended = orphans.into_iter().map(|task| task.task_id).collect();
        self.inner.cancel_all(recovered.ended.clone()).await?;
        for task in unfinished {
            self.inner.enroll(&task).await?;
            // What waits for somebody elsewhere is followed there.
            // An agent that stands looks after those who wait for its answers.
            // What waits for the budget looks itself whether more may be spent by now.
            let waits = task.waiting_for.is_some_and(|what| what != WaitingFor::Budget);
            if waits && !is_resident(&task) {
                self.inner.watch_time(&task.task_id).await?;
                recovered.waiting.push(task.task_id);
            } else {
                running::start(&self.inner, &task.task_id);
                recovered.begun.push(task.task_id);
            }
        }
        self.inner.tell_again().await?;
        for approval in self.approvals(ApprovalSelector::Pending).await? {
            if let Some(at) = approval.expires_at {
                self.inner.watch_deadline(at, approval.approval_id);
            }
        }
        Ok(recovered)
    }

    /// Ends a task: its model call, its tools, itself, and everything it dispatched. When this
    /// returns, the journal says so.
    pub async fn cancel(&self, task_id: &TaskId) -> Result<(), OrchestratorError> {
        let ended = self.inner.cancel(task_id).await;
        // What it dispatched before it ended is nobody's any more, whoever ended it.
        self.inner.cancel_below(task_id).await?;
        ended
    }

    /// Says what came of a call that went out to the client who offered its tool. The first answer
    /// counts; when this returns, the journal has it, and its task goes on.
    pub async fn tool_result(
        &self,
        task_id: &TaskId,
        tool_call_id: &ToolCallId,
        result: ToolResult,
    ) -> Result<(), OrchestratorError> {
        let clock = &self.inner.world.clock;
        self.amend(task_id, |summary, state| {
            external::answer(state, summary, tool_call_id, &result, clock.now())
        })
        .await
    }

    /// Tasks, the newest first.
    pub async fn tasks(&self, query: TaskQuery) -> Result<Vec<TaskSummary>, OrchestratorError> {
        Ok(self.inner.world.journal.tasks(query).await?)
    }

    /// What answers cost.
    pub fn prices(&self) -> &PriceTable {
        &self.inner.world.prices
    }

    /// Conversations, the one with the newest task first.
    pub async fn sessions(
        &self,
        limit: NonZeroUsize,
    ) -> Result<Vec<SessionSummary>, OrchestratorError> {
        Ok(self.inner.world.journal.sessions(limit.into()).await?)
    }

    /// Questions to a person, the oldest first.
    pub async fn approvals(
        &self,
        which: ApprovalSelector,
    ) -> Result<Vec<Approval>, OrchestratorError> {
        let query = ApprovalQuery { which, after: None, limit: APPROVALS_MAX };
        Ok(self.inner.world.journal.approvals(query).await?)
    }

    /// Messages that wait for their turn.
    pub async fn queued(
        &self,
        limit: NonZeroUsize,
    ) -> Result<Vec<QueuedMessage>, OrchestratorError> {
        Ok(self.inner.world.journal.queued(limit.into()).await?)
    }

    /// Live agents, and where they stand. One whose task nobody works on stands idle.
    pub async fn agents(&self, limit: NonZeroUsize) -> Result<Vec<LiveAgent>, OrchestratorError> {
        let mut agents = self.inner.world.journal.agents(limit.into()).await?;
        for agent in &mut agents {
            self.inner.bring_up_to_date(agent);
        }
        Ok(agents)
    }

    /// The last position of the journal.
    pub async fn head(&self) -> Result<Position, OrchestratorError> {
        let after = Position(u64::MAX);
        let read = Read { task_id: None, after, limit: NonZeroUsize::MIN };
        Ok(self.inner.world.journal.read(read).await?.head)
    }

    /// A task as it is now.
    pub async fn task(&self, task_id: &TaskId) -> Result<TaskState, OrchestratorError> {
        self.inner.load(task_id).await
    }

    /// Waits until a task has ended, or until neither it nor anything below it can go on without
    /// somebody. One that stopped before that, or that nobody works on, is an error that says why.
    pub async fn wait(&self, task_id: &TaskId) -> Result<TaskState, OrchestratorError> {
        let mut seen = None;
        loop {
            // Listens before it looks, so that nothing is missed in between.
            let rested = self.inner.rested.notified();
            let mut bell = self.inner.bells.hear(Some(task_id));
            bell.borrow_and_update();
            self.inner.places.left(task_id).await;
            let state = self.task(task_id).await?;
            if state.status.is_terminal() || state.status == TaskStatus::InputRequired {
                return Ok(state);
            }
            // Unless somebody has taken it up again meanwhile.
            if self.inner.places.find(task_id).is_some() {
                continue;
            }
            if let Some(why) = self.inner.places.why(task_id) {
                return Err(why);
            }
            if !self.inner.waits_for_others(&state) {
                // Whoever was told a moment ago that it should look may be just about to.
                if seen == Some(state.seq) {
                    return Err(OrchestratorError::AtRest { task_id: task_id.clone() });
                }
                seen = Some(state.seq);
                tokio::time::sleep(LOOK_AGAIN).await;
                continue;
            }
            match self.inner.below_rests(&state).await? {
                Rests::No { asks } => {
                    let look_again = async {
                        if asks {
                            tokio::time::sleep(LOOK_AGAIN).await;
                        } else {
                            std::future::pending::<()>().await;
                        }
                    };
                    tokio::select! {
                        () = rested => {}
                        () = look_again => {}
                        _ = bell.changed() => {}
                    }
                }
                Rests::ForSomebody => return Ok(state),
                Rests::Stopped(why) => return Err(why),
            }
        }
    }

    /// Everything behind a position, of one task or of all, as it was and as it goes on.
    pub fn follow(&self, task_id: Option<TaskId>, after: Position) -> Follower {
        let journal = Arc::clone(&self.inner.world.journal);
        Follower::new(journal, &self.inner.bells, task_id, after)
    }

    /// What is shown as it comes. A watcher that is too slow misses some and is told.
    pub fn deltas(&self) -> broadcast::Receiver<Delta> {
        self.inner.deltas.all()
    }

    /// Brings everything to rest: whatever can, ends its step within `patience`; the rest is cut
    /// off and goes on another time. Says whether everything came to rest by itself.
    pub async fn shutdown(&self, patience: Duration) -> bool {
        self.inner.stop.cancel();
        self.inner.tracker.close();
        let rested = tokio::time::timeout(patience, self.inner.tracker.wait()).await.is_ok();
        self.inner.kill.cancel();
        self.inner.tracker.wait().await;
        rested
    }

    /// Writes what `events` makes of a task that has not ended, however often somebody else
    /// writes first, and has it looked at.
    pub(crate) async fn amend(
        &self,
        task_id: &TaskId,
        events: impl Fn(&TaskSummary, &TaskState) -> Result<Vec<EventBody>, OrchestratorError>,
    ) -> Result<(), OrchestratorError> {
        loop {
            let summary = self.inner.unfinished(task_id).await?;
            let events = events(&summary, &self.task(task_id).await?)?;
            if events.is_empty() || self.inner.append_behind(&summary, events).await? {
                running::start(&self.inner, task_id);
                return Ok(());
            }
        }
    }
}
