//! The loop of one task: decide, record, act.
//!
//! | file               | subject                                               |
//! |--------------------|-------------------------------------------------------|
//! | `task_run`         | one run of a task: its state, and events to write     |
//! | `ask_model`        | calls the model                                       |
//! | `call_tools`       | runs tool calls, through gate and approvals           |
//! | `interrupted_call` | what becomes of an interrupted call                   |
//! | `tools`            | which tools a task may use; runs one call             |
//! | `person_tools`     | questions to a person, plans, the list of things to do |
//! | `output`           | the result and its schema                             |
//! | `task_end`         | how a task ends                                       |
//! | `interruption`     | what interrupts a call, and what follows              |
//! | `budget_wait`      | the wait for budget                                   |
//! | `compact`          | shortens a conversation                               |
//! | `flush`            | writes the events of a run; merges with other writers |

pub(crate) mod ask_model;
mod budget_wait;
pub(crate) mod call_tools;
pub(crate) mod compact;
pub(crate) mod flush;
pub(crate) mod interrupted_call;
mod interruption;
pub(crate) mod output;
pub(crate) mod person_tools;
mod task_end;
mod task_run;
pub(crate) mod tools;

pub(crate) use task_run::{AtPeer, RunEnd, TaskRun, UnsettledCall};

use std::sync::Arc;

use antiphon_core::{AgentId, AgentState, HistoryRef, TaskId, TaskStatus, WaitingFor};
use chrono::{DateTime, Utc};

use crate::deps::RuntimeDeps;
use crate::dispatch::wake_parent;
use crate::orchestrator_error::OrchestratorError;
use crate::runner::{followed, peer_cancel};
use crate::services::Services;
use crate::storage::is_unavailable;
use crate::task::control::cancel;
use crate::task::decide::Action;
use crate::task::limits;
use crate::task::schedule::deadlines;
use crate::task::schedule::run_slots::RunningTask;
use crate::task::state::TaskState;
use crate::task::state::state_cache::{self, AfterEnd, CachedTask};
use crate::task::step::flush::FlushOutcome;

/// Runs a task until it has ended, is suspended, or the orchestrator shuts down.
pub(crate) async fn run(
    services: Arc<Services>,
    task_id: &TaskId,
    running: Arc<RunningTask>,
) -> Result<RunEnd, OrchestratorError> {
    let cached = services.cache.take_current(task_id, &services.reader, &services.trees).await?;
    let (state, after_end) = (&cached.state, cached.after_end);
    if let Some(cancel) = &state.created.cancels
        && !state.status.is_terminal()
    {
        return peer_cancel::deliver(&services, state, cancel, &running).await;
    }
    let deps = deps_of(&services, state)?;
    if !state.status.is_terminal() {
        deps.check_model(state)?;
        limits::note_deadlines(&services.time, state);
        if followed::is_held(&services, state) {
            return Ok(RunEnd::Waiting);
        }
        wake_parent::start_parent(&services, state);
    }
    let seq_before = state.seq;
    let mut run = TaskRun::of(services, deps, cached, running);
    run.rejoin_everything().await?;
    let end = match run.run_steps().await {
        // Without a limit `flush` does not give up, so this was another use of the journal. What the
        // run knows is recorded before the task starts again from the journal.
        Err(error) if is_unavailable(&error) => {
            if run.services.deps.settings.storage_wait_max.is_none() {
                run.flush().await?;
            }
            return Err(error);
        }
        end => end?,
    };
    if end != RunEnd::Ended {
        let TaskRun { services, state, trees, .. } = run;
        if !services.background.stop.is_cancelled() {
            state_cache::keep_resting(&services, state, trees, seq_before);
        }
        return Ok(end);
    }
    // The process that recorded the end may have ended before it woke the waiters.
    wake_parent::found_ended(&run.services, &run.state);
    if after_end == AfterEnd::KeepConversation {
        keep_conversation(&mut run);
    }
    if run.state.has_children
        && matches!(run.state.status, TaskStatus::Failed | TaskStatus::Canceled)
    {
        // Their owner has ended.
        cancel::cancel_descendants(&run.services, task_id).await?;
    }
    Ok(end)
}

/// The environment of a task.
fn deps_of(services: &Services, state: &TaskState) -> Result<Arc<RuntimeDeps>, OrchestratorError> {
    match services.deps_of(&state.task_id, &state.created) {
        Ok(deps) => Ok(deps),
        // Nothing is called for it any more.
        Err(_) if state.status.is_terminal() => Ok(Arc::clone(&services.deps)),
        Err(reason) => Err(OrchestratorError::NoModel { task_id: state.task_id.clone(), reason }),
    }
}

/// Keeps the conversation of an ended task for the next task of its session.
fn keep_conversation(run: &mut TaskRun) {
    let TaskState { task_id, seq, created, conversation, .. } = &mut run.state;
    let until = HistoryRef { task_id: task_id.clone(), seq: *seq };
    let conversation = std::mem::take(conversation);
    let conversations = &run.services.reader.conversations;
    conversations.insert(until, conversation, created.history.as_ref());
    state_cache::sweep_later(&run.services);
}

impl TaskRun {
    /// A run of a task in this state.
    fn of(
        services: Arc<Services>,
        deps: Arc<RuntimeDeps>,
        cached: CachedTask,
        running: Arc<RunningTask>,
    ) -> Self {
        let CachedTask { state, trees, thinking, .. } = cached;
        let thinking = thinking.or_else(|| still_thinking(&state));
        let agent_state = first_state(thinking, state.agent_state);
        let new_id = || AgentId::from(services.deps.ids.random());
        let agent_id = thinking.or(state.agent_id).unwrap_or_else(new_id);
        Self {
            services,
            deps,
            state,
            trees,
            agent_id,
            agent_state,
            unwritten: vec![],
            ending_from: None,
            before_end: None,
            unsettled: vec![],
            running,
            at_peer: AtPeer::default(),
        }
    }

    /// Takes up what the task waits for, which another process may have begun.
    async fn rejoin_everything(&mut self) -> Result<(), OrchestratorError> {
        if self.state.status.is_terminal() || self.is_dispatched_elsewhere() {
            return Ok(());
        }
        self.settle_recorded().await;
        self.rejoin().await?;
        self.rejoin_requests().await?;
        self.services.request_waits.restore(&self.state);
        for (until, request) in self.state.reply_deadlines() {
            let task_id = self.state.task_id.clone();
            deadlines::watch_reply(&self.services, until, task_id, request);
        }
        Ok(())
    }

    /// Runs steps until there is nothing to do.
    async fn run_steps(&mut self) -> Result<RunEnd, OrchestratorError> {
        let run = self;
        loop {
            run.running.heartbeat();
            if run.running.cancel.is_cancelled() && !run.state.status.is_terminal() {
                run.cancel_remote().await?;
                if !run.state.status.is_terminal() {
                    run.end(TaskStatus::Canceled, None);
                }
            }
            if let Some(status) = run.running.interrupt.take()
                && !run.state.status.is_terminal()
            {
                run.interrupt(status);
            }
            if run.services.background.starts_nothing() {
                // Known results are recorded; the rest is done by the next process.
                return run.flush().await.map(|_| run.run_end());
            }
            run.services.budget.ensure_loaded(run.state.created.payer.as_deref()).await?;
            let action = run.decide();
            run.end_budget_wait(&action);
            let action = run.unless_model_is_missing(action);
            let _step = run.calls_something(&action).then(|| run.services.background.steps.token());
            if run.runs_remotely(&action) {
                run.run_remotely().await?;
                continue;
            }
            if run.is_left_to_parent(&action) {
                return run.flush().await.map(|_| run.run_end());
            }
            if let Some(end) = run.perform(action).await? {
                return Ok(end);
            }
        }
    }

    /// Carries out an action. Returns the end of the run when there is nothing more to do.
    async fn perform(&mut self, action: Action) -> Result<Option<RunEnd>, OrchestratorError> {
        match action {
            Action::Ended | Action::Suspend | Action::WaitForModel | Action::WaitForPeer => {
                return self.suspend_run().await;
            }
            Action::Idle => {
                self.advance_to(AgentState::Idle);
                return self.suspend_run().await;
            }
            Action::AskModel => self.ask_model().await?,
            Action::CallTools(calls) => self.call_tools(calls).await?,
            Action::CompleteCalls(calls) => self.complete_calls(calls).await?,
            Action::WaitForClient => self.wait_for(WaitingFor::ToolResult),
            Action::ReportDetached(tasks) => self.report_detached(tasks).await?,
            Action::ExpireRequests(ids) => self.expire_requests(ids).await?,
            Action::TimeOutRequests(ids) => self.time_out_requests(ids).await?,
            Action::AnswerRequest(answer) => self.answer_current_request(answer).await?,
            Action::TakeMessages(ids) => self.take_messages(&ids),
            Action::Compact => {
                let tokens_max = compact::tokens_max(&self.state, self.window_tokens());
                self.compact(tokens_max).await?;
            }
            Action::Finish(result) => self.finish(result),
            Action::RejectOutput(reason) => self.reject_output(&reason),
            Action::FailOnLimit(limit) => self.fail_on_limit(&limit),
            Action::WaitForBudget(spent) => self.wait_for_budget(&spent),
        }
        Ok(None)
    }

    /// Suspends the task. `None` when an event came first: then there is more to do.
    async fn suspend_run(&mut self) -> Result<Option<RunEnd>, OrchestratorError> {
        Ok(match self.suspend().await? {
            FlushOutcome::Written | FlushOutcome::Ended => Some(self.run_end()),
            FlushOutcome::Overtaken => None,
        })
    }

    /// Whether models or tools are called here for an action.
    fn calls_something(&self, action: &Action) -> bool {
        if self.runs_remotely(action) {
            return self.has_worker_here();
        }
        matches!(action, Action::AskModel | Action::CallTools(_) | Action::Compact)
    }

    /// Writes what is unwritten before the run returns, and sets the deadlines of the task.
    async fn suspend(&mut self) -> Result<FlushOutcome, OrchestratorError> {
        let flushed = self.flush().await?;
        // An ended task has no deadlines.
        let ahead = |until: &DateTime<Utc>| !self.services.time.has_passed(*until);
        if !self.state.status.is_terminal() {
            let Ok(budget) = self.next_budget_check() else { return Ok(FlushOutcome::Overtaken) };
            let due = [limits::deadline(&self.state), self.state.next_reply_deadline()];
            // A new day may have begun since the decision, without a notification, and the next attempt
            // to reach the model or the peer may be due.
            let attempt = self.state.outage.next_at;
            for until in due.into_iter().flatten().filter(ahead).chain(attempt) {
                deadlines::watch_task(&self.services, until, self.state.task_id.clone());
            }
            if let Some(date) = budget {
                deadlines::watch_date(&self.services, date, self.state.task_id.clone());
            }
        }
        Ok(flushed)
    }
}

/// The agent of a task that waited for its model and goes on thinking: the next attempt writes nothing before it.
fn still_thinking(state: &TaskState) -> Option<AgentId> {
    let waited = state.waiting_for == Some(WaitingFor::Model);
    state.agent_id.filter(|_| waited && state.agent_state == AgentState::Thinking)
}

/// The state of an agent when a run begins. `thinking` is the agent that goes on thinking.
fn first_state(thinking: Option<AgentId>, recorded: AgentState) -> AgentState {
    match (thinking, recorded) {
        (Some(_), _) => AgentState::Thinking,
        // Its calls wait, or run again.
        (None, AgentState::ToolCall) => AgentState::ToolCall,
        // What it thought is lost: it begins again.
        (None, AgentState::Idle | AgentState::Thinking | AgentState::Reflecting) => {
            AgentState::Idle
        }
    }
}
