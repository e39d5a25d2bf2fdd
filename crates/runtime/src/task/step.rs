//! The loop of one task: decide, record, act.
//!
//! | file               | subject                                               |
//! |--------------------|-------------------------------------------------------|
//! | `ask_model`        | calls the model                                       |
//! | `call_tools`       | runs tool calls, through gate and approvals           |
//! | `interrupted_call` | what becomes of an interrupted call                   |
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
    AgentId, AgentState, Cancel, EventBody, HistoryRef, InteractionId, Message, MessageAppended,
    StateChanged, StatusChanged, TaskId, TaskStatus, ToolCallBlock, ToolResult, WaitingFor,
};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::budget::spend_limits::{BudgetRefusal, BudgetSpent};
use crate::budget::tree_usage::Tree;
use crate::deps::{Dispatch, RuntimeDeps};
use crate::dispatch::pending_call::Outcomes;
use crate::dispatch::wake_parent;
use crate::inbox::start_agent;
use crate::orchestrator_error::OrchestratorError;
use crate::runner::{followed, peer_cancel};
use crate::services::Services;
use crate::storage::is_unavailable;
use crate::task::control::{cancel, interrupt};
use crate::task::decide::{self, Action};
use crate::task::limits::{self, LimitContext, LimitReached};
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
    let CachedTask { state, trees, thinking, after_end, .. } =
        services.cache.take_current(task_id, &services.reader, &services.trees).await?;
    if let Some(cancel) = &state.created.cancels
        && !state.status.is_terminal()
    {
        return peer_cancel::deliver(&services, &state, cancel, &running).await;
    }
    let deps = match services.deps_of(task_id, &state.created) {
        Ok(deps) => deps,
        // Nothing is called for it any more.
        Err(_) if state.status.is_terminal() => Arc::clone(&services.deps),
        Err(reason) => {
            return Err(OrchestratorError::NoModel { task_id: task_id.clone(), reason });
        }
    };
    if !state.status.is_terminal() {
        deps.check_model(&state)?;
        limits::know_deadlines(&services.time, &state);
        if followed::is_held(&services, &state) {
            return Ok(RunEnd::Waiting);
        }
        wake_parent::start_parent(&services, &state);
    }
    let thinking = thinking.or_else(|| still_thinking(&state));
    let agent_state = first_state(thinking, state.agent_state);
    let new_id = || AgentId::from(services.deps.ids.random());
    let agent_id = thinking.or(state.agent_id).unwrap_or_else(new_id);
    let seq_before = state.seq;
    let mut run = TaskRun {
        services,
        deps,
        state,
        trees,
        agent_id,
        agent_state,
        unwritten: vec![],
        ending_from: None,
        unsettled: vec![],
        running,
        at_peer: AtPeer::default(),
    };
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
    // The process that recorded the end may have died before it woke the waiters.
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

/// Keeps the conversation of an ended task for the next task of its session.
fn keep_conversation(run: &mut TaskRun) {
    let TaskState { task_id, seq, created, conversation, .. } = &mut run.state;
    let until = HistoryRef { task_id: task_id.clone(), seq: *seq };
    let conversation = std::mem::take(conversation);
    let conversations = &run.services.reader.conversations;
    conversations.insert(until, conversation, created.history.as_ref());
    state_cache::sweep_later(&run.services);
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
    /// What the task works with.
    pub(crate) deps: Arc<RuntimeDeps>,
    /// State of the task, including events that are not written yet.
    pub(crate) state: TaskState,
    /// Totals of the task and its ancestors, its own first.
    pub(crate) trees: Vec<Arc<Tree>>,
    /// Id of the agent: the same in every run, until the task is handed over.
    pub(crate) agent_id: AgentId,
    pub(crate) agent_state: AgentState,
    pub(crate) unwritten: Vec<EventBody>,
    /// Index in `unwritten` of the first event of the task's end. The end is decided again when
    /// another writer was first.
    pub(crate) ending_from: Option<usize>,
    /// Started calls with a result that may not be written yet.
    pub(crate) unsettled: Vec<UnsettledCall>,
    pub(crate) running: Arc<RunningTask>,
    /// What is known about the task at a peer.
    pub(crate) at_peer: AtPeer,
}

/// What a run knows about its task at a peer.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AtPeer {
    /// The peer had its time to receive the cancellation.
    pub(crate) cancel_tried: bool,
    /// The peer has refused to create the task.
    pub(crate) refused: bool,
}

/// A started call with a result. Its tool may keep something until the result is recorded.
pub(crate) struct UnsettledCall {
    pub(crate) tool: String,
    pub(crate) call_uuid: Uuid,
}

impl TaskRun {
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
            match action {
                Action::Ended | Action::Suspend | Action::WaitForModel | Action::WaitForPeer => {
                    match run.suspend().await? {
                        FlushOutcome::Written | FlushOutcome::Ended => return Ok(run.run_end()),
                        FlushOutcome::Overtaken => {}
                    }
                }
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
                Action::Compact => {
                    run.compact(compact::kept_tokens_max(run.window_tokens())).await?;
                }
                Action::Finish(result) => run.finish(result),
                Action::RejectOutput(reason) => run.reject_output(&reason),
                Action::FailOnLimit(limit) => run.fail_on_limit(&limit),
                Action::WaitForBudget(spent) => run.wait_for_budget(&spent),
            }
        }
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
                time: &self.services.time,
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
        self.agent_id = AgentId::from(self.services.deps.ids.random());
        self.agent_state = AgentState::Idle;
    }

    pub(crate) fn window_tokens(&self) -> Option<u64> {
        let model = self.state.created.model.as_ref()?;
        self.deps.models.window_tokens(model)
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

    /// Suspends the task, because a person interrupted its turn.
    fn interrupt(&mut self, status: StatusChanged) {
        let waits = self.state.waiting_for == Some(WaitingFor::Resume);
        if !waits || interrupt::names_more(&status, self.state.detail.as_ref()) {
            self.push(status);
        }
    }

    /// Fires when the task is canceled or interrupted, its time is over, or the orchestrator begins to
    /// stop. For calls of the model, which can be repeated.
    pub(crate) fn interruption(&self) -> Cancel {
        self.interruption_or(self.services.background.stop.clone())
    }

    /// The same for tools: they may finish while the orchestrator drains.
    pub(crate) fn tool_interruption(&self) -> Cancel {
        self.interruption_or(self.services.background.cut_off.clone())
    }

    fn interruption_or(&self, stop: CancellationToken) -> Cancel {
        let interrupt = self.running.interrupt.token();
        let cancel = self.running.cancel.clone();
        let left = limits::deadline(&self.state).map(|until| self.services.time.left(until));
        Cancel::when(async move {
            let time_over = async {
                match left {
                    Some(left) => tokio::time::sleep(left).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = cancel.cancelled() => {}
                () = interrupt.cancelled() => {}
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
            self.push(MessageAppended::of_queued(message, queued.id));
        }
    }

    pub(crate) fn add_result(&mut self, call: &ToolCallBlock, result: ToolResult) {
        if self.state.started.contains_key(&call.id) {
            let call_uuid = self.call_uuid(call);
            self.unsettled.push(UnsettledCall { tool: call.name.clone(), call_uuid });
        }
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
        let mut error = limit.to_string();
        let away = match self.state.waiting_for {
            Some(WaitingFor::Model) => Some("model"),
            Some(WaitingFor::Peer) => Some("peer"),
            Some(
                WaitingFor::Approval
                | WaitingFor::Resume
                | WaitingFor::ToolResult
                | WaitingFor::Budget
                | WaitingFor::Storage,
            )
            | None => None,
        };
        if let Some(away) = away
            && let Some(reason) = self.state.detail.as_ref().and_then(|it| it["error"].as_str())
        {
            error = format!("{error}; it waited for its {away}: {reason}");
        }
        let detail = json!({ "code": code, "error": error, "limit": limit });
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
