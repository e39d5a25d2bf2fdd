//! The loop of one task: decide, record, act.
//!
//! | file               | subject                                               |
//! |--------------------|-------------------------------------------------------|
//! | `ask_model`        | calls the model                                       |
//! | `call_tools`       | runs tool calls, through gate and approvals           |
//! | `interrupted_call` | whether an interrupted call runs again                |
//! | `tools`            | which tools a task may use; runs one call             |
//! | `output`           | the result and its schema                             |
//! | `compact`          | shortens a conversation                               |
//! | `flush`            | writes the events of a run; merges with other writers |

pub(crate) mod ask_model;
pub(crate) mod call_tools;
pub(crate) mod compact;
pub(crate) mod flush;
pub(crate) mod interrupted_call;
pub(crate) mod output;
pub(crate) mod tools;

use std::sync::Arc;

use antiphon_core::{
    AgentId, AgentState, Cancel, EventBody, InteractionId, Message, MessageAppended, StateChanged,
    StatusChanged, TaskId, TaskStatus, ToolCallBlock, ToolResult, WaitingFor,
};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::budget::spend_limits::{BudgetRefusal, BudgetSpent};
use crate::budget::tree_usage::Tree;
use crate::deps::Dispatch;
use crate::dispatch::pending_call::Outcomes;
use crate::dispatch::wake_parent;
use crate::inbox::start_agent;
use crate::orchestrator_error::OrchestratorError;
use crate::services::Services;
use crate::task::control::cancel;
use crate::task::decide::{self, Action};
use crate::task::limits::{self, LimitContext, LimitReached};
use crate::task::schedule::deadlines;
use crate::task::schedule::run_slots::RunningTask;
use crate::task::state::TaskState;
use crate::task::state::state_cache::CachedTask;
use crate::task::step::flush::FlushOutcome;

/// Runs a task until it has ended, is suspended, or the orchestrator shuts down.
pub(crate) async fn run(
    services: Arc<Services>,
    task_id: &TaskId,
    running: Arc<RunningTask>,
) -> Result<RunEnd, OrchestratorError> {
    let CachedTask { state, trees, thinking, .. } =
        services.cache.take_current(task_id, &services.reader, &services.trees).await?;
    if !state.status.is_terminal() {
        services.deps.check_model(&state)?;
    }
    let agent_state = if thinking.is_some() { AgentState::Thinking } else { AgentState::Idle };
    let agent_id = thinking.unwrap_or_else(|| AgentId::from(services.deps.ids.next()));
    let mut run = TaskRun {
        services,
        state,
        trees,
        agent_id,
        agent_state,
        unwritten: vec![],
        ending_from: None,
        running,
    };
    if !run.state.status.is_terminal() && !run.is_dispatched_elsewhere() {
        run.rejoin().await?;
        run.rejoin_requests().await?;
        for (until, request) in run.state.reply_deadlines() {
            deadlines::watch_reply(&run.services, until, task_id.clone(), request);
        }
    }
    let end = run.run_steps().await?;
    if end != RunEnd::Ended {
        let TaskRun { services, state, trees, .. } = run;
        if !services.background.stop.is_cancelled() {
            services.cache.keep_suspended(state, trees);
        }
        return Ok(end);
    }
    // The process that recorded the end may have died before it woke the waiters.
    wake_parent::found_ended(&run.services, &run.state);
    let ended_early = matches!(run.state.status, TaskStatus::Failed | TaskStatus::Canceled);
    if run.state.has_children && ended_early {
        // Their owner has ended.
        cancel::cancel_descendants(&run.services, task_id).await?;
    }
    Ok(end)
}

/// Why a run returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunEnd {
    /// The task has ended.
    Ended,
    /// It waits for a user or a client.
    Suspended,
    /// It waits for other tasks or messages.
    Waiting,
}

/// One run of a task.
pub(crate) struct TaskRun {
    pub(crate) services: Arc<Services>,
    /// State of the task, including events that are not written yet.
    pub(crate) state: TaskState,
    /// Totals of the task and its ancestors, its own first.
    pub(crate) trees: Vec<Arc<Tree>>,
    /// Id of the agent; each run has a new one.
    pub(crate) agent_id: AgentId,
    pub(crate) agent_state: AgentState,
    pub(crate) unwritten: Vec<EventBody>,
    /// Index in `unwritten` of the first event of the task's end. The end is decided again when
    /// another writer was first.
    pub(crate) ending_from: Option<usize>,
    pub(crate) running: Arc<RunningTask>,
}

impl TaskRun {
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
            if run.services.background.stop.is_cancelled() {
                // Known results are recorded; the rest is done by the next process.
                return run.flush().await.map(|_| run.run_end());
            }
            run.services.budget.ensure_loaded(run.state.created.payer.as_deref()).await?;
            let action = run.decide();
            run.end_budget_wait(&action);
            if run.runs_remotely(&action) {
                run.run_remotely().await?;
                continue;
            }
            if run.is_left_to_parent(&action) {
                return run.flush().await.map(|_| run.run_end());
            }
            match action {
                Action::Ended | Action::Suspend => match run.suspend().await? {
                    FlushOutcome::Written | FlushOutcome::Ended => return Ok(run.run_end()),
                    FlushOutcome::Overtaken => {}
                },
                Action::Idle => {
                    run.advance_to(AgentState::Idle);
                    if run.suspend().await? != FlushOutcome::Overtaken {
                        return Ok(run.run_end());
                    }
                }
                Action::AskModel => run.ask_model().await?,
                Action::CallTools(calls) => run.call_tools(calls).await?,
                Action::CompleteCalls(calls) => run.complete_calls(calls).await?,
                Action::WaitForClient => run.wait_for(WaitingFor::ToolResult),
                Action::ReportDetached(tasks) => run.report_detached(tasks).await?,
                Action::ExpireRequests(ids) => run.expire_requests(ids).await?,
                Action::TimeOutRequests(ids) => run.time_out_requests(ids).await?,
                Action::AnswerRequest(answer) => run.answer_current_request(answer).await?,
                Action::TakeMessages(ids) => run.take_messages(&ids),
                Action::Compact => run.compact(compact::room(run.window_tokens())).await?,
                Action::Finish(result) => run.finish(result),
                Action::RejectOutput(reason) => run.reject_output(&reason),
                Action::FailOnLimit(limit) => run.fail_on_limit(&limit),
                Action::WaitForBudget(spent) => run.wait_for_budget(&spent),
            }
        }
    }

    /// Writes what is unwritten before the run returns, and sets the deadlines of the task.
    async fn suspend(&mut self) -> Result<FlushOutcome, OrchestratorError> {
        let flushed = self.flush().await?;
        // An ended task has no deadlines.
        let ahead = |until: &DateTime<Utc>| *until > self.services.deps.clock.now();
        if !self.state.status.is_terminal() {
            let Ok(budget) = self.next_budget_check() else { return Ok(FlushOutcome::Overtaken) };
            let due = [limits::deadline(&self.state), self.state.next_reply_deadline()];
            // A new day may have begun since the decision, without a notification.
            for until in due.into_iter().flatten().filter(ahead).chain(budget) {
                deadlines::watch_task(&self.services, until, self.state.task_id.clone());
            }
        }
        Ok(flushed)
    }

    /// When a task that waits for budget is checked again. `Err` means at once: more may have been
    /// allowed since the decision, before the wait was recorded.
    fn next_budget_check(&self) -> Result<Option<DateTime<Utc>>, ()> {
        if self.state.waiting_for != Some(WaitingFor::Budget) || self.is_dispatched_elsewhere() {
            return Ok(None);
        }
        match self.services.budget.model_refusal(&self.state.created) {
            Some(BudgetRefusal::Spent(spent)) => Ok(Some(spent.resets_at)),
            Some(BudgetRefusal::PriceUnknown { .. }) | None => Err(()),
        }
    }

    /// Ends the wait for budget when the task calls its model.
    fn end_budget_wait(&mut self, action: &Action) {
        let waits = self.state.waiting_for == Some(WaitingFor::Budget);
        if waits
            && matches!(action, Action::AskModel | Action::Compact)
            && !self.is_dispatched_elsewhere()
        {
            self.push(StatusChanged::new(TaskStatus::Running));
        }
    }

    /// Suspends the task until more may be spent.
    fn wait_for_budget(&mut self, spent: &BudgetSpent) {
        let status = StatusChanged::new(TaskStatus::InputRequired);
        let (detail, waiting_for) = (Some(spent.detail()), Some(WaitingFor::Budget));
        self.push(StatusChanged { detail, waiting_for, ..status });
    }

    pub(crate) fn push(&mut self, body: impl Into<EventBody>) {
        let body = body.into();
        self.state.apply(&body);
        self.unwritten.push(body);
    }

    fn run_end(&self) -> RunEnd {
        match self.state.status {
            TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Canceled => RunEnd::Ended,
            TaskStatus::InputRequired => RunEnd::Suspended,
            TaskStatus::Pending | TaskStatus::Running => RunEnd::Waiting,
        }
    }

    fn decide(&self) -> Action {
        let decide = |outcomes: &Outcomes| {
            let context = LimitContext {
                now: self.services.deps.clock.now(),
                scopes: self.trees.iter().map(|tree| tree.scope()).collect(),
                outcomes,
                prices: &self.services.deps.prices,
                window_tokens: self.window_tokens(),
                budget: self.services.budget.model_refusal(&self.state.created),
            };
            decide::next_action(&self.state, &context)
        };
        // Most tasks wait for no other task and skip the lock.
        if self.state.pending_calls.is_empty() && self.state.detached.is_empty() {
            return decide(&Outcomes::new());
        }
        self.services.waiters.outcomes(&self.state.task_id, decide)
    }

    /// Starts a new agent: another definition took over the task.
    pub(crate) fn replace_agent(&mut self) {
        self.agent_id = AgentId::from(self.services.deps.ids.next());
        self.agent_state = AgentState::Idle;
    }

    pub(crate) fn window_tokens(&self) -> Option<u64> {
        let model = self.state.created.model.as_ref()?;
        self.services.deps.models.window_tokens(model)
    }

    /// Moves the agent along its state cycle up to `to`.
    pub(crate) fn advance_to(&mut self, to: AgentState) {
        while self.agent_state != to {
            let (from, next) = (self.agent_state, self.agent_state.next());
            self.agent_state = next;
            self.push(StateChanged { agent_id: self.agent_id, from, to: next });
        }
    }

    pub(crate) fn end(&mut self, status: TaskStatus, detail: Option<Value>) {
        self.ending_from.get_or_insert(self.unwritten.len());
        // The parent orchestrator answers open requests in that case.
        if self.services.deps.settings.dispatch == Dispatch::Here {
            for answer in start_agent::final_replies(&self.state, status) {
                self.push(answer);
            }
        }
        self.push(StatusChanged { detail, ..StatusChanged::new(status) });
    }

    /// Fires when the task is canceled, its time is over, or the orchestrator shuts down.
    pub(crate) fn interruption(&self) -> Cancel {
        let (cancel, stop) = (self.running.cancel.clone(), self.services.background.stop.clone());
        let left = limits::deadline(&self.state)
            .map(|until| (until - self.services.deps.clock.now()).to_std().unwrap_or_default());
        Cancel::when(async move {
            let time_over = async {
                match left {
                    Some(left) => tokio::time::sleep(left).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = cancel.cancelled() => {}
                () = stop.cancelled() => {}
                () = time_over => {}
            }
        })
    }

    /// Moves queued messages into the conversation.
    fn take_messages(&mut self, ids: &[InteractionId]) {
        let find = |id: &InteractionId| self.state.queue.iter().find(|queued| queued.id == *id);
        let taken: Vec<_> = ids.iter().filter_map(find).cloned().collect();
        for queued in taken {
            let message =
                Arc::new(Message::User(queued.user_message(self.services.deps.clock.now())));
            self.push(MessageAppended { message, queued: Some(queued.id) });
        }
    }

    pub(crate) fn add_result(&mut self, call: &ToolCallBlock, result: ToolResult) {
        let message = tools::message(call, result, self.services.deps.clock.now());
        self.push(MessageAppended::new(message));
    }

    fn finish(&mut self, result: Value) {
        self.ending_from = Some(self.unwritten.len());
        for call in self.final_calls() {
            self.add_result(&call, ToolResult::text("delivered"));
        }
        self.advance_to(AgentState::ToolCall);
        self.advance_to(AgentState::Idle);
        self.end(TaskStatus::Completed, Some(result));
    }

    fn reject_output(&mut self, reason: &str) {
        self.push(antiphon_core::OutputRejected { reason: reason.to_owned() });
        let text = format!(
            "The result does not fit its schema: {reason}. Call `final` again with a `result` \
             that does."
        );
        let final_calls = self.final_calls();
        for call in &final_calls {
            self.add_result(call, ToolResult::failed(&text));
        }
        if final_calls.is_empty() {
            let now = self.services.deps.clock.now();
            self.push(MessageAppended::new(antiphon_core::UserMessage::text(text, now)));
        }
        self.advance_to(AgentState::Idle);
    }

    pub(crate) fn fail_on_limit(&mut self, limit: &LimitReached) {
        let code = match limit {
            LimitReached::Repairs { .. } => "invalid_output",
            LimitReached::Turns { .. }
            | LimitReached::ToolCalls { .. }
            | LimitReached::Tokens { .. }
            | LimitReached::Cost { .. }
            | LimitReached::PriceUnknown { .. }
            | LimitReached::WallClock { .. }
            | LimitReached::Depth { .. }
            | LimitReached::FanOut { .. }
            | LimitReached::Tasks { .. }
            | LimitReached::Handovers { .. } => "limit_reached",
        };
        let detail = json!({ "code": code, "error": limit.to_string(), "limit": limit });
        self.end(TaskStatus::Failed, Some(detail));
    }

    /// Suspends the task until `waiting_for` happens.
    pub(crate) fn wait_for(&mut self, waiting_for: WaitingFor) {
        let status = StatusChanged::new(TaskStatus::InputRequired);
        self.push(StatusChanged { waiting_for: Some(waiting_for), ..status });
    }

    /// The calls of the last answer that deliver the result.
    fn final_calls(&self) -> Vec<ToolCallBlock> {
        let last = self.state.last_step();
        let calls = last.into_iter().flat_map(|(answer, _)| answer.tool_calls());
        calls.filter(|call| output::is_final(call)).cloned().collect()
    }
}
