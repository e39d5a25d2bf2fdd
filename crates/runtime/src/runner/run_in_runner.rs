//! Tasks that a runner runs.
//!
//! A runner runs a task until it has ended, is suspended, or has calls that only the orchestrator
//! answers. Then the orchestrator acts, and the runner continues. A runner has the time and the budget
//! of its task, and is dropped when it does not stop.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::port::{JournalError, RunnerError, RunnerTask, TaskUpdates};
use antiphon_core::{
    Cancel, PEER_UNAVAILABLE, Position, Provider, RunnerConfig, TaskStatus, ToolCallId, WaitingFor,
};
use async_trait::async_trait;
use serde_json::json;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::deps::Dispatch;
use crate::inbox::input_permission::TaskInput;
use crate::orchestrator_error::OrchestratorError;
use crate::runner::answer_display::LiveDisplay;
use crate::runner::bounded_model::{BoundedModel, Bounds, NoModel};
use crate::runner::peer_cancel;
use crate::runner::runner_journal::{ReadableTasks, RunnerJournal};
use crate::task::decide::Action;
use crate::task::limits;
use crate::task::outage::{AnswerShown, Failure};
use crate::task::step::TaskRun;

/// Maximum number of attempts to reach a runner on this machine. For a peer the task waits.
const TRIES_MAX: u32 = 5;

/// Pause before the second attempt; it doubles with each further one.
const TRY_AFTER: Duration = Duration::from_millis(200);

/// How long another orchestrator may take to receive a cancellation and to end the task. After that the task ends
/// here, and an order delivers the cancellation.
const CANCEL_WAIT: Duration = Duration::from_millis(500);

/// How long a runner may take to stop.
const STOP_WAIT: Duration = Duration::from_secs(10);

impl TaskRun {
    /// Whether another orchestrator handles the calls of this task that dispatch agents.
    pub(crate) fn is_dispatched_elsewhere(&self) -> bool {
        self.services.deps.settings.dispatch == Dispatch::Parent || self.is_orchestrated_elsewhere()
    }

    fn is_orchestrated_elsewhere(&self) -> bool {
        self.deps.is_orchestrated(self.state.created.runner.as_ref())
    }

    /// Whether the runner reads the inbox of this task itself.
    fn reads_inbox(&self) -> bool {
        let Some(config) = &self.state.created.runner else { return false };
        let mut runners = self.deps.runners.iter();
        runners.any(|known| known.kind() == config.kind && known.reads_inbox())
    }

    /// Whether its runner calls models and tools for it in a process that ends with this one.
    pub(crate) fn has_worker_here(&self) -> bool {
        !self.is_orchestrated_elsewhere() && !self.reads_inbox()
    }

    /// Cancels the task in another orchestrator, if it runs there and can be reached now.
    pub(crate) async fn cancel_remote(&mut self) -> Result<(), OrchestratorError> {
        let Some(config) = self.state.created.runner.clone() else { return Ok(()) };
        if self.is_orchestrated_elsewhere()
            && !std::mem::replace(&mut self.at_peer.cancel_tried, true)
        {
            // Also during a shutdown.
            let patience = Cancel::when(tokio::time::sleep(CANCEL_WAIT));
            let (spent, calls) = (CancellationToken::new(), Arc::default());
            let canceled = self.run_in_runner(&config, patience, &spent, calls).await?;
            self.rebase().await?;
            if let Err(error) = canceled {
                tracing::debug!(task.id = %self.state.task_id, %error, "could not cancel in the runner");
            }
        }
        Ok(())
    }

    /// Records that the peer has to cancel the task, before it ends here.
    pub(crate) async fn remember_cancel(&self) -> Result<(), OrchestratorError> {
        let services = &self.services;
        if self.at_peer.refused || !peer_cancel::may_run_on_peer(services, &self.state.created) {
            return Ok(());
        }
        let order = peer_cancel::order(services, &self.state);
        let heartbeat = || self.running.heartbeat();
        let appended = services.append_when_possible(|| order.clone(), heartbeat).await?;
        peer_cancel::start(services, &appended);
        Ok(())
    }

    /// Whether the runner performs this action.
    pub(crate) fn runs_remotely(&self, action: &Action) -> bool {
        let here = self.services.deps.settings.dispatch == Dispatch::Here;
        if !here || self.state.created.runner.is_none() {
            return false;
        }
        match action {
            Action::Ended
            | Action::FailOnLimit(_)
            | Action::WaitForBudget(_)
            | Action::WaitForPeer => false,
            // In a task of another orchestrator these refer to its own tasks, requests and model.
            Action::CompleteCalls(_)
            | Action::WaitForModel
            | Action::ReportDetached(_)
            | Action::WaitForClient
            | Action::ExpireRequests(_)
            | Action::TimeOutRequests(_)
            | Action::AnswerRequest(_) => self.is_orchestrated_elsewhere(),
            Action::Idle => self.is_orchestrated_elsewhere() || self.reads_inbox(),
            Action::Suspend => {
                let held = self.state.waiting_for.is_some_and(|what| what != WaitingFor::Peer);
                self.is_orchestrated_elsewhere() && !held
            }
            Action::CallTools(pending) => {
                let ours = pending.iter().all(|pending| {
                    self.orchestrates(&pending.call.name) || self.is_external(&pending.call.name)
                });
                !ours || self.is_orchestrated_elsewhere()
            }
            // A task that waits for our budget reads messages here: in the runner it would continue.
            Action::TakeMessages(_) => {
                let waits = self.state.waiting_for == Some(WaitingFor::Budget);
                !waits || self.is_dispatched_elsewhere()
            }
            Action::AskModel | Action::Compact | Action::Finish(_) | Action::RejectOutput(_) => {
                true
            }
        }
    }

    /// Whether the parent orchestrator performs this action.
    pub(crate) fn is_left_to_parent(&self, action: &Action) -> bool {
        if self.services.deps.settings.dispatch == Dispatch::Here {
            return false;
        }
        match action {
            Action::CompleteCalls(_)
            | Action::ReportDetached(_)
            | Action::WaitForClient
            | Action::ExpireRequests(_)
            | Action::TimeOutRequests(_)
            | Action::AnswerRequest(_)
            | Action::WaitForModel
            | Action::WaitForPeer
            | Action::Idle => true,
            Action::CallTools(pending) => pending.iter().all(|pending| {
                self.orchestrates(&pending.call.name) || self.is_external(&pending.call.name)
            }),
            Action::Ended
            | Action::Suspend
            | Action::FailOnLimit(_)
            | Action::WaitForBudget(_)
            | Action::AskModel
            | Action::TakeMessages(_)
            | Action::Compact
            | Action::Finish(_)
            | Action::RejectOutput(_) => false,
        }
    }

    /// Has the runner run the task, with retries.
    pub(crate) async fn run_remotely(&mut self) -> Result<(), OrchestratorError> {
        let Some(config) = self.state.created.runner.clone() else { return Ok(()) };
        self.flush().await?;
        if let Some(limit) = limits::used_up(&self.trees, &self.services.deps.prices) {
            self.fail_on_limit(&limit);
            return Ok(());
        }
        let mut wait = TRY_AFTER;
        for attempt in 1..=TRIES_MAX {
            let before = self.state.seq;
            let (spent, elsewhere) = (CancellationToken::new(), self.is_orchestrated_elsewhere());
            let running_calls = Arc::new(watch::Sender::new(HashSet::new()));
            let rest = self.rest_signal(&spent, running_calls.subscribe());
            let stopped = self.run_in_runner(&config, rest, &spent, running_calls).await?;
            self.at_peer.cancel_tried |= self.running.cancel.is_cancelled();
            self.rebase().await?;
            if self.must_stop() || spent.is_cancelled() {
                return Ok(());
            }
            let reason = match stopped {
                Ok(()) if self.state.seq > before => return Ok(()),
                Ok(()) => "it recorded nothing".to_owned(),
                Err(RunnerError::Journal(error)) => return Err(error.into()),
                Err(RunnerError::Storage { reason }) => {
                    return Err(JournalError::Unavailable { reason }.into());
                }
                Err(RunnerError::Unavailable { reason }) => {
                    self.wait_for_storage().await?;
                    reason
                }
                Err(RunnerError::Refused { reason }) => {
                    self.at_peer.refused = self.state.relayed.is_none();
                    self.fail_runner("runner_refused", &config, &reason);
                    return Ok(());
                }
            };
            if elsewhere {
                self.wait_for_peer(reason);
                return Ok(());
            }
            if attempt == TRIES_MAX {
                self.fail_runner("runner_unavailable", &config, &reason);
                return Ok(());
            }
            tracing::warn!(task.id = %self.state.task_id, runner = %config.kind, reason, "retrying");
            self.running.heartbeat();
            let (cancel, stop) =
                (self.running.cancel.clone(), self.services.background.stop.clone());
            let interrupt = self.running.interrupt.token();
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = cancel.cancelled() => return Ok(()),
                () = interrupt.cancelled() => return Ok(()),
                () = stop.cancelled() => return Ok(()),
            }
            wait *= 2;
        }
        Ok(())
    }

    /// Fires when the runner has to rest: the budget is spent, and the task waits here, or the orchestrator stops.
    fn rest_signal(
        &self,
        spent: &CancellationToken,
        mut calls: watch::Receiver<HashSet<ToolCallId>>,
    ) -> Cancel {
        let (spent, stop) = (spent.clone(), self.services.background.stop.clone());
        let cut_off = self.services.background.cut_off.clone();
        let elsewhere = self.is_orchestrated_elsewhere();
        Cancel::when(async move {
            // Calls that run may finish first, unless they go on in another orchestrator.
            let drained = async {
                stop.cancelled().await;
                tokio::select! {
                    () = cut_off.cancelled() => {}
                    _ = calls.wait_for(|calls| elsewhere || calls.is_empty()) => {}
                }
            };
            tokio::select! {
                () = drained => {}
                () = spent.cancelled() => {}
            }
        })
    }

    /// An error while the journal cannot be written: the runner may be away for the same reason. The task waits, as
    /// others do.
    async fn wait_for_storage(&self) -> Result<(), OrchestratorError> {
        let elsewhere = self.is_orchestrated_elsewhere();
        match self.services.deps.journal.check_append().await {
            Err(fault) if !elsewhere => {
                Err(JournalError::Unavailable { reason: fault.to_string() }.into())
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Suspends the task until the next attempt to reach its peer.
    fn wait_for_peer(&mut self, error: String) {
        // A pause of the user takes precedence.
        if self.state.waiting_for == Some(WaitingFor::Resume) {
            return;
        }
        let deps = &self.services.deps;
        let (now, random) = (deps.clock.now(), deps.ids.next());
        let (code, retry_after, shown) = (PEER_UNAVAILABLE, None, AnswerShown::Nothing);
        let failure = Failure { code, error, retry_after, shown };
        let wait = self.state.outage.wait_after(failure, now, random);
        let attempt = wait.attempt;
        tracing::warn!(task.id = %self.state.task_id, attempt, "a task waits for its peer");
        self.push(wait.status(WaitingFor::Peer));
    }

    fn must_stop(&self) -> bool {
        self.running.cancel.is_cancelled()
            || self.running.interrupt.has_fired()
            || self.services.background.stop.is_cancelled()
            || self.state.status.is_terminal()
            || limits::deadline(&self.state).is_some_and(|at| self.services.time.has_passed(at))
            || limits::used_up(&self.trees, &self.services.deps.prices).is_some()
    }

    fn fail_runner(&mut self, code: &str, config: &RunnerConfig, reason: &str) {
        let error = format!("the runner `{}` failed: {reason}", config.kind);
        self.end(TaskStatus::Failed, Some(json!({ "code": code, "error": error })));
    }

    async fn run_in_runner(
        &self,
        config: &RunnerConfig,
        rest: Cancel,
        spent: &CancellationToken,
        running_calls: Arc<watch::Sender<HashSet<ToolCallId>>>,
    ) -> Result<Result<(), RunnerError>, OrchestratorError> {
        let Some(runner) = self.deps.runner(&config.kind) else {
            let reason = "there is no such runner here".to_owned();
            return Ok(Err(RunnerError::Refused { reason }));
        };
        let provider = match self.deps.provider_of(&self.state.created) {
            Ok(provider) => provider,
            Err(_) if !runner.uses_run_provider() => Arc::new(NoModel) as Arc<dyn Provider>,
            Err(reason) => return Ok(Err(RunnerError::Refused { reason })),
        };
        // Fires when the task is canceled, its time is over, or a shared limit is reached.
        let end = self.running.cancel.child_token();
        let bounds = Bounds {
            trees: self.trees.clone(),
            services: Arc::clone(&self.services),
            task: self.state.created.clone(),
            spent: spent.clone(),
        };
        let (over, interrupt) = (end.clone(), self.running.interrupt.token());
        let deps = &self.services.deps;
        let (limits, dispatches) =
            limits::left(&self.state, &self.trees, &deps.prices, &self.services.time);
        let run = RunnerTask {
            task_id: self.state.task_id.clone(),
            config: config.config.clone(),
            limits,
            dispatches,
            journal: Arc::new(RunnerJournal {
                services: Arc::clone(&self.services),
                gate: Arc::clone(&self.deps.gate),
                task_id: self.state.task_id.clone(),
                root: self.root().clone(),
                readable: ReadableTasks::of(&self.state),
                trees: self.trees.clone(),
                resident_agent: self
                    .state
                    .created
                    .resident
                    .then(|| self.state.created.agent.clone()),
                uses_run_provider: runner.uses_run_provider(),
                is_unrestricted: runner.is_unrestricted(),
                end: end.clone(),
                running_calls,
            }),
            provider: Arc::new(BoundedModel { provider, bounds }),
            cancel: Cancel::when(async move { over.cancelled().await }),
            interrupt: Cancel::when(interrupt.cancelled_owned()),
            input: Arc::new(TaskInput {
                services: Arc::clone(&self.services),
                task_id: self.state.task_id.clone(),
            }),
            shutdown: rest,
            display: Arc::new(LiveDisplay::new(
                &self.services,
                &self.state.task_id,
                self.root(),
                self.state.turns,
            )),
            updates: Box::new(UpdateSignal(
                self.services.notifier.subscribe(Some(&self.state.task_id)),
            )),
        };
        Ok(self.supervise_runner(runner.run(run), &end).await)
    }

    /// Waits for a runner, but no longer than it may work.
    async fn supervise_runner(
        &self,
        work: impl Future<Output = Result<(), RunnerError>>,
        end: &CancellationToken,
    ) -> Result<(), RunnerError> {
        let mut work = std::pin::pin!(work);
        let mut alive = tokio::time::interval(Duration::from_secs(30));
        let left = limits::deadline(&self.state).map(|until| self.services.time.left(until));
        let mut time_over = std::pin::pin!(async {
            match left {
                Some(left) => tokio::time::sleep(left).await,
                None => std::future::pending().await,
            }
        });
        let stop_wait = if self.is_orchestrated_elsewhere() { CANCEL_WAIT } else { STOP_WAIT };
        let mut stubborn = std::pin::pin!(async {
            end.cancelled().await;
            tokio::time::sleep(stop_wait).await;
        });
        loop {
            tokio::select! {
                stopped = &mut work => return stopped,
                () = &mut time_over, if !end.is_cancelled() => end.cancel(),
                // Dropping the runner's future has to stop what it started.
                () = &mut stubborn => {
                    let reason = "it did not stop in time".to_owned();
                    return Err(RunnerError::Unavailable { reason });
                }
                _ = alive.tick() => self.running.heartbeat(),
            }
        }
    }
}

/// Signals that events were recorded for a task.
struct UpdateSignal(watch::Receiver<Position>);

#[async_trait]
impl TaskUpdates for UpdateSignal {
    async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
