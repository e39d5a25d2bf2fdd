//! Tasks that somebody else works on.
//!
//! A runner works on a task until it has ended, waits for somebody, or has calls that only the
//! orchestrator answers. Then it is the orchestrator's turn, and after that the runner's again. What
//! it may do to the journal is bounded here: it writes what happens in its own task, and can neither
//! decide for a person nor make up tasks.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::port::{
    Append, Appended, ApprovalQuery, Journal, JournalError, News, Page, Read, Run, RunnerError,
    TaskQuery, Which,
};
use antiphon_core::{
    Approval, Cancel, EventBody, HistoryRef, LiveAgent, PieceSource, Position, Provider,
    ProviderError, Queued, Request, RunnerConfig, SessionSummary, TaskCreated, TaskId, TaskStatus,
    TaskSummary,
};
use async_trait::async_trait;
use serde_json::json;
use tokio::sync::watch;

use crate::decide::Step;
use crate::inner::Inner;
use crate::lap::Work;
use crate::orchestrator::OrchestratorError;
use crate::tree::{self, Tree};
use crate::world::Dispatch;

/// Times that a runner that cannot be reached is asked again.
const TRIES_MAX: u32 = 5;

/// How long to wait before the first of these times; twice as long before each further one.
const TRY_AFTER: Duration = Duration::from_millis(200);

/// Tasks that one history goes through, at most.
const HISTORY_TASKS_MAX: usize = 64;

impl Work {
    /// Whether the calls of this task that dispatch agents are another orchestrator's.
    pub(crate) fn is_left_to_others(&self) -> bool {
        self.inner.world.settings.dispatch == Dispatch::Above || self.is_orchestrated_elsewhere()
    }

    fn is_orchestrated_elsewhere(&self) -> bool {
        self.inner.is_orchestrated(self.state.created.runner.as_ref())
    }

    /// Has another orchestrator end what it works on for this task.
    pub(crate) async fn cancel_elsewhere(&mut self) -> Result<(), OrchestratorError> {
        let Some(config) = self.state.created.runner.clone() else { return Ok(()) };
        if self.is_orchestrated_elsewhere() {
            // Out of reach, it ends there by its own limits.
            let told = self.run_elsewhere(&config).await?;
            self.catch_up().await?;
            if let Err(error) = told {
                tracing::warn!(task.id = %self.state.task_id, %error, "not told of the end");
            }
        }
        Ok(())
    }

    /// Whether somebody else does this.
    pub(crate) fn runs_elsewhere(&self, step: &Step) -> bool {
        let here = self.inner.world.settings.dispatch == Dispatch::Here;
        if !here || self.state.created.runner.is_none() {
            return false;
        }
        match step {
            Step::Over | Step::Refuse(_) => false,
            // What stands in the journal of another orchestrator's task means something there.
            Step::Settle(_) | Step::Report(_) | Step::Remind | Step::Idle => {
                self.is_orchestrated_elsewhere()
            }
            Step::Rest => self.is_orchestrated_elsewhere() && self.state.waiting_for.is_none(),
            Step::Call(pending) => {
                let ours = pending.iter().all(|pending| {
                    self.orchestrates(&pending.call.name) || self.is_external(&pending.call.name)
                });
                !ours || self.is_orchestrated_elsewhere()
            }
            Step::Ask | Step::Take(_) | Step::Compact | Step::Finish(_) | Step::Reject(_) => true,
        }
    }

    /// Whether this is for the orchestrator that this one works for.
    pub(crate) fn leaves_to_above(&self, step: &Step) -> bool {
        if self.inner.world.settings.dispatch == Dispatch::Here {
            return false;
        }
        match step {
            Step::Settle(_) | Step::Report(_) | Step::Remind | Step::Idle => true,
            Step::Call(pending) => pending.iter().all(|pending| {
                self.orchestrates(&pending.call.name) || self.is_external(&pending.call.name)
            }),
            Step::Over
            | Step::Rest
            | Step::Refuse(_)
            | Step::Ask
            | Step::Take(_)
            | Step::Compact
            | Step::Finish(_)
            | Step::Reject(_) => false,
        }
    }

    /// Has the runner of this task work on it, however often it has to be asked.
    pub(crate) async fn delegate(&mut self) -> Result<(), OrchestratorError> {
        let Some(config) = self.state.created.runner.clone() else { return Ok(()) };
        self.flush().await?;
        let mut wait = TRY_AFTER;
        // An orchestrator is asked again and again by its own runner.
        let tries_max = if self.is_orchestrated_elsewhere() { 1 } else { TRIES_MAX };
        for attempt in 1..=tries_max {
            let before = self.state.seq;
            let stopped = self.run_elsewhere(&config).await?;
            self.catch_up().await?;
            if self.is_done_with() {
                return Ok(());
            }
            let reason = match stopped {
                Ok(()) if self.state.seq > before => return Ok(()),
                Ok(()) => "it did nothing".to_owned(),
                Err(RunnerError::Journal(error)) => return Err(error.into()),
                Err(RunnerError::Unavailable { reason }) => reason,
                Err(RunnerError::Refused { reason }) => {
                    self.give_up("runner_refused", &config, &reason);
                    return Ok(());
                }
            };
            if attempt == tries_max {
                self.give_up("runner_unavailable", &config, &reason);
                return Ok(());
            }
            tracing::warn!(task.id = %self.state.task_id, runner = %config.kind, reason, "again");
            self.running.beat();
            let (cancel, stop) = (self.running.cancel.clone(), self.inner.stop.clone());
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = cancel.cancelled() => return Ok(()),
                () = stop.cancelled() => return Ok(()),
            }
            wait *= 2;
        }
        Ok(())
    }

    fn is_done_with(&self) -> bool {
        self.running.cancel.is_cancelled()
            || self.inner.stop.is_cancelled()
            || self.state.status.is_terminal()
    }

    fn give_up(&mut self, code: &str, config: &RunnerConfig, reason: &str) {
        let error = format!("the runner `{}` gave up: {reason}", config.kind);
        self.end(TaskStatus::Failed, Some(json!({ "code": code, "error": error })));
    }

    async fn run_elsewhere(
        &self,
        config: &RunnerConfig,
    ) -> Result<Result<(), RunnerError>, OrchestratorError> {
        let runners = &self.inner.world.runners;
        let Some(runner) = runners.iter().find(|known| known.kind() == config.kind) else {
            let reason = "there is no such runner here".to_owned();
            return Ok(Err(RunnerError::Refused { reason }));
        };
        let provider = match self.inner.provider(&self.state) {
            Ok(provider) => provider,
            Err(_) if !runner.asks_here() => Arc::new(Nobody) as Arc<dyn Provider>,
            Err(reason) => return Ok(Err(RunnerError::Refused { reason })),
        };
        let (cancel, stop) = (self.running.cancel.clone(), self.inner.stop.clone());
        let run = Run {
            task_id: self.state.task_id.clone(),
            config: config.config.clone(),
            journal: Arc::new(OwnPages {
                inner: Arc::clone(&self.inner),
                task_id: self.state.task_id.clone(),
                root: self.root().clone(),
                readable: self.readable().await?,
                trees: self.trees.clone(),
            }),
            provider,
            cancel: Cancel::when(async move { cancel.cancelled().await }),
            rest: Cancel::when(async move { stop.cancelled().await }),
            news: Box::new(Bell(self.inner.bells.hear(Some(&self.state.task_id)))),
        };
        let mut work = std::pin::pin!(runner.run(run));
        let mut alive = tokio::time::interval(Duration::from_secs(30));
        loop {
            tokio::select! {
                stopped = &mut work => return Ok(stopped),
                _ = alive.tick() => self.running.beat(),
            }
        }
    }

    /// This task, and those whose history it goes on with.
    async fn readable(&self) -> Result<Vec<TaskId>, OrchestratorError> {
        let mut readable = vec![self.state.task_id.clone()];
        let mut history = self.state.created.history.clone();
        while let Some(HistoryRef { task_id, .. }) = history.take() {
            if readable.len() == HISTORY_TASKS_MAX {
                break;
            }
            history = tree::beginning(&task_id, &*self.inner.world.journal).await?.0.history;
            readable.push(task_id);
        }
        Ok(readable)
    }
}

impl Inner {
    /// Whether the model of a task with this runner is asked from here.
    pub(crate) fn asks_here(&self, runner: Option<&RunnerConfig>) -> bool {
        let Some(config) = runner else { return true };
        let known = self.world.runners.iter().find(|known| known.kind() == config.kind);
        known.is_none_or(|known| known.asks_here())
    }

    /// Whether a runner is an orchestrator of its own.
    pub(crate) fn is_orchestrated(&self, runner: Option<&RunnerConfig>) -> bool {
        let Some(config) = runner else { return false };
        let known = self.world.runners.iter().find(|known| known.kind() == config.kind);
        known.is_some_and(|known| known.is_orchestrator())
    }
}

/// Answers nothing: for runners that ask nobody.
struct Nobody;

impl Provider for Nobody {
    fn open(&self, _: Request) -> PieceSource {
        let message = "this runner has no model to ask".to_owned();
        let refused = Err(ProviderError::InvalidRequest { message });
        Box::pin(futures_util::stream::iter([refused]))
    }
}

/// Rings when something is written to a task.
struct Bell(watch::Receiver<Position>);

#[async_trait]
impl News for Bell {
    async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// The journal as far as a runner is concerned.
struct OwnPages {
    inner: Arc<Inner>,
    task_id: TaskId,
    root: TaskId,
    readable: Vec<TaskId>,
    trees: Vec<Arc<Tree>>,
}

impl OwnPages {
    fn refuse<T>(&self, reason: &str) -> Result<T, JournalError> {
        let reason = format!("a runner {reason}");
        Err(JournalError::Invalid { task_id: self.task_id.clone(), reason })
    }
}

impl OwnPages {
    /// How far a task above may go, and nothing else of it.
    async fn bounds(&self, read: Read) -> Result<Page, JournalError> {
        let mut page =
            self.inner.world.journal.read(Read { limit: NonZeroUsize::MIN, ..read }).await?;
        page.events.retain_mut(|event| {
            let EventBody::TaskCreated(created) = &mut event.body else { return false };
            *created = TaskCreated {
                parent: created.parent.clone(),
                root: created.root.clone(),
                depth: created.depth,
                limits: created.limits,
                ..TaskCreated::new(created.agent.clone(), created.session_id.clone())
            };
            true
        });
        Ok(page)
    }
}

/// Whether a runner may write it.
fn is_for_runners(body: &EventBody) -> bool {
    match body {
        EventBody::StatusChanged(_)
        | EventBody::StateChanged(_)
        | EventBody::MessageAppended(_)
        | EventBody::ApprovalRequested(_)
        | EventBody::ToolStarted(_)
        | EventBody::ToolRefused(_)
        | EventBody::UsageRecorded(_)
        | EventBody::OutputRejected(_)
        | EventBody::Compacted(_)
        | EventBody::Relayed(_) => true,
        EventBody::TaskCreated(_)
        | EventBody::MessageQueued(_)
        | EventBody::ApprovalDecided(_)
        | EventBody::ToolRequested(_)
        | EventBody::Dispatched(_)
        | EventBody::Awaited(_)
        | EventBody::HandedOver(_) => false,
    }
}

#[async_trait]
impl Journal for OwnPages {
    async fn append(&self, append: Append) -> Result<Appended, JournalError> {
        if append.task_id != self.task_id {
            return self.refuse("writes its own task and no other");
        }
        if append.key.is_some() {
            return self.refuse("uses no keys");
        }
        if let Some(body) = append.events.iter().find(|body| !is_for_runners(body)) {
            return self.refuse(&format!("cannot write `{}`", body.event_type()));
        }
        let events = append.events.clone();
        let appended = self.inner.append(append).await?;
        for tree in &self.trees {
            tree.add(&events);
        }
        Ok(appended)
    }

    async fn read(&self, read: Read) -> Result<Page, JournalError> {
        match &read.task_id {
            Some(task_id) if self.readable.contains(task_id) => {
                self.inner.world.journal.read(read).await
            }
            Some(task_id) if self.trees.iter().any(|tree| tree.top == *task_id) => {
                self.bounds(read).await
            }
            Some(_) | None => self.refuse("reads its own task and no other"),
        }
    }

    async fn tasks(&self, query: TaskQuery) -> Result<Vec<TaskSummary>, JournalError> {
        let own = match &query.which {
            Which::One(task_id) => self.readable.contains(task_id),
            Which::Tree(root) => *root == self.root,
            Which::All
            | Which::Tops
            | Which::Unfinished
            | Which::Beginning(_)
            | Which::Session(_) => false,
        };
        if !own {
            return Ok(Vec::new());
        }
        let mut tasks = self.inner.world.journal.tasks(query).await?;
        for task in tasks.iter_mut().filter(|task| task.task_id != self.task_id) {
            // How much the others used is its business, what they say is not.
            task.title.clear();
            task.preview = None;
        }
        Ok(tasks)
    }

    async fn sessions(&self, _: NonZeroUsize) -> Result<Vec<SessionSummary>, JournalError> {
        Ok(Vec::new())
    }

    async fn approvals(&self, _: ApprovalQuery) -> Result<Vec<Approval>, JournalError> {
        Ok(Vec::new())
    }

    async fn agents(&self, _: NonZeroUsize) -> Result<Vec<LiveAgent>, JournalError> {
        Ok(Vec::new())
    }

    async fn queued(&self, _: NonZeroUsize) -> Result<Vec<Queued>, JournalError> {
        Ok(Vec::new())
    }
}
