//! Tasks that somebody else works on.
//!
//! A runner works on a task until it has ended, waits for somebody, or has calls that only the
//! orchestrator answers. Then it is the orchestrator's turn, and after that the runner's again. It has
//! the time and the budget that its task has, and is let go of when it does not stop.

use std::sync::Arc;
use std::time::Duration;

use antiphon_core::port::{Run, RunnerError, TaskUpdates};
use antiphon_core::{
    Cancel, HistoryRef, Position, Provider, RunnerConfig, TaskId, TaskStatus, WaitingFor,
};
use async_trait::async_trait;
use serde_json::json;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::bounded::{Bounded, Bounds, Nobody};
use crate::decide::Step;
use crate::inner::Inner;
use crate::lap::Work;
use crate::limits;
use crate::orchestrator_error::OrchestratorError;
use crate::own_pages::RunnerJournal;
use crate::tree;
use crate::world::Dispatch;

/// Times that a runner that cannot be reached is asked again.
const TRIES_MAX: u32 = 5;

/// How long to wait before the first of these times; twice as long before each further one.
const TRY_AFTER: Duration = Duration::from_millis(200);

/// How long another orchestrator may take to hear that a task is canceled.
const TELL_WAIT: Duration = Duration::from_secs(5);

/// How long a runner may take to stop when it is told to.
const END_WAIT: Duration = Duration::from_secs(10);

/// Tasks that one history goes through, at most.
const HISTORY_TASKS_MAX: usize = 10_000;

impl Work {
    /// Whether the calls of this task that dispatch agents are another orchestrator's.
    pub(crate) fn is_left_to_others(&self) -> bool {
        self.inner.world.settings.dispatch == Dispatch::Above || self.is_orchestrated_elsewhere()
    }

    fn is_orchestrated_elsewhere(&self) -> bool {
        self.inner.is_orchestrated(self.state.created.runner.as_ref())
    }

    /// Whether the runner reads the inbox of this task itself.
    fn reads_inbox(&self) -> bool {
        let Some(config) = &self.state.created.runner else { return false };
        let mut runners = self.inner.world.runners.iter();
        runners.any(|known| known.kind() == config.kind && known.reads_inbox())
    }

    /// Has another orchestrator end what it works on for this task.
    pub(crate) async fn cancel_elsewhere(&mut self) -> Result<(), OrchestratorError> {
        let Some(config) = self.state.created.runner.clone() else { return Ok(()) };
        if self.is_orchestrated_elsewhere() {
            // Also when everything here comes to rest, it is told; out of reach, it ends there by its
            // own limits.
            let patience = Cancel::when(tokio::time::sleep(TELL_WAIT));
            let told = self.run_elsewhere(&config, patience, &CancellationToken::new()).await?;
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
            Step::Over | Step::Refuse(_) | Step::Halt(_) => false,
            // What stands in the journal of another orchestrator's task means something there.
            Step::Settle(_)
            | Step::Report(_)
            | Step::Remind
            | Step::Expire(_)
            | Step::TimeOut(_)
            | Step::Answer(_) => self.is_orchestrated_elsewhere(),
            Step::Idle => self.is_orchestrated_elsewhere() || self.reads_inbox(),
            Step::Rest => self.is_orchestrated_elsewhere() && self.state.waiting_for.is_none(),
            Step::Call(pending) => {
                let ours = pending.iter().all(|pending| {
                    self.orchestrates(&pending.call.name) || self.is_external(&pending.call.name)
                });
                !ours || self.is_orchestrated_elsewhere()
            }
            // What is said to a task that waits for our budget is heard here: there it would go on.
            Step::Take(_) => {
                let waits = self.state.waiting_for == Some(WaitingFor::Budget);
                !waits || self.is_left_to_others()
            }
            Step::Ask | Step::Compact | Step::Finish(_) | Step::Reject(_) => true,
        }
    }

    /// Whether this is for the orchestrator that this one works for.
    pub(crate) fn leaves_to_above(&self, step: &Step) -> bool {
        if self.inner.world.settings.dispatch == Dispatch::Here {
            return false;
        }
        match step {
            Step::Settle(_)
            | Step::Report(_)
            | Step::Remind
            | Step::Expire(_)
            | Step::TimeOut(_)
            | Step::Answer(_)
            | Step::Idle => true,
            Step::Call(pending) => pending.iter().all(|pending| {
                self.orchestrates(&pending.call.name) || self.is_external(&pending.call.name)
            }),
            Step::Over
            | Step::Rest
            | Step::Refuse(_)
            | Step::Halt(_)
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
        if let Some(limit) = limits::used_up(&self.trees, &self.inner.world.prices) {
            self.refuse(&limit);
            return Ok(());
        }
        let mut wait = TRY_AFTER;
        // An orchestrator is asked again and again by its own runner.
        let tries_max = if self.is_orchestrated_elsewhere() { 1 } else { TRIES_MAX };
        for attempt in 1..=tries_max {
            let before = self.state.seq;
            // Fires when the budget is spent: then it rests, and waits here.
            let (stop, spent) = (self.inner.stop.clone(), CancellationToken::new());
            let rests = spent.clone();
            let rest = Cancel::when(async move {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = rests.cancelled() => {}
                }
            });
            let stopped = self.run_elsewhere(&config, rest, &spent).await?;
            self.catch_up().await?;
            if self.is_done_with() || spent.is_cancelled() {
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
            || limits::deadline(&self.state).is_some_and(|at| self.inner.world.clock.now() >= at)
            || limits::used_up(&self.trees, &self.inner.world.prices).is_some()
    }

    fn give_up(&mut self, code: &str, config: &RunnerConfig, reason: &str) {
        let error = format!("the runner `{}` gave up: {reason}", config.kind);
        self.end(TaskStatus::Failed, Some(json!({ "code": code, "error": error })));
    }

    async fn run_elsewhere(
        &self,
        config: &RunnerConfig,
        rest: Cancel,
        spent: &CancellationToken,
    ) -> Result<Result<(), RunnerError>, OrchestratorError> {
        let runners = &self.inner.world.runners;
        let Some(runner) = runners.iter().find(|known| known.kind() == config.kind) else {
            let reason = "there is no such runner here".to_owned();
            return Ok(Err(RunnerError::Refused { reason }));
        };
        let provider = match self.inner.provider(&self.state) {
            Ok(provider) => provider,
            Err(_) if !runner.uses_run_provider() => Arc::new(Nobody) as Arc<dyn Provider>,
            Err(reason) => return Ok(Err(RunnerError::Refused { reason })),
        };
        // Fires when the task is canceled, when its time is over, and when what it shares is used up.
        let end = self.running.cancel.child_token();
        let bounds = Bounds {
            trees: self.trees.clone(),
            inner: Arc::clone(&self.inner),
            task: self.state.created.clone(),
            spent: spent.clone(),
        };
        let over = end.clone();
        let world = &self.inner.world;
        let (limits, dispatches) =
            limits::left(&self.state, &self.trees, &world.prices, world.clock.now());
        let run = Run {
            task_id: self.state.task_id.clone(),
            config: config.config.clone(),
            limits,
            dispatches,
            journal: Arc::new(RunnerJournal {
                inner: Arc::clone(&self.inner),
                task_id: self.state.task_id.clone(),
                root: self.root().clone(),
                readable: self.readable().await?,
                trees: self.trees.clone(),
                standing: self.state.created.resident.then(|| self.state.created.agent.clone()),
                uses_run_provider: runner.uses_run_provider(),
                end: end.clone(),
            }),
            provider: Arc::new(Bounded { provider, bounds }),
            cancel: Cancel::when(async move { over.cancelled().await }),
            shutdown: rest,
            updates: Box::new(Bell(self.inner.bells.hear(Some(&self.state.task_id)))),
        };
        Ok(self.watched(runner.run(run), &end).await)
    }

    /// Waits for a runner, and no longer than it may work.
    async fn watched(
        &self,
        work: impl Future<Output = Result<(), RunnerError>>,
        end: &CancellationToken,
    ) -> Result<(), RunnerError> {
        let mut work = std::pin::pin!(work);
        let mut alive = tokio::time::interval(Duration::from_secs(30));
        let left = limits::deadline(&self.state)
            .map(|until| (until - self.inner.world.clock.now()).to_std().unwrap_or_default());
        let mut time_over = std::pin::pin!(async {
            match left {
                Some(left) => tokio::time::sleep(left).await,
                None => std::future::pending().await,
            }
        });
        let mut stubborn = std::pin::pin!(async {
            end.cancelled().await;
            tokio::time::sleep(END_WAIT).await;
        });
        loop {
            tokio::select! {
                stopped = &mut work => return stopped,
                () = &mut time_over, if !end.is_cancelled() => end.cancel(),
                // Whatever it started is its own to end when it is let go of.
                () = &mut stubborn => {
                    let reason = "it did not stop when it was told to".to_owned();
                    return Err(RunnerError::Unavailable { reason });
                }
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
    pub(crate) fn uses_run_provider(&self, runner: Option<&RunnerConfig>) -> bool {
        let Some(config) = runner else { return true };
        let known = self.world.runners.iter().find(|known| known.kind() == config.kind);
        known.is_none_or(|known| known.uses_run_provider())
    }

    /// Whether a runner is an orchestrator of its own.
    pub(crate) fn is_orchestrated(&self, runner: Option<&RunnerConfig>) -> bool {
        let Some(config) = runner else { return false };
        let known = self.world.runners.iter().find(|known| known.kind() == config.kind);
        known.is_some_and(|known| known.is_orchestrator())
    }
}

/// Rings when something is written to a task.
struct Bell(watch::Receiver<Position>);

#[async_trait]
impl TaskUpdates for Bell {
    async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
