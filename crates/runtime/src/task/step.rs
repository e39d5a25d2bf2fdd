//! The loop of one task: decide, record, act.

use std::sync::Arc;

use antiphon_core::{
    AgentId, AgentState, Cancel, EventBody, InteractionId, Message, MessageAppended, StateChanged,
    StatusChanged, TaskId, TaskStatus, ToolCallBlock, ToolResult, WaitingFor,
};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::budget::spend_limits::{BudgetRefusal, BudgetSpent};
use crate::budget::tree::Tree;
use crate::deps::Dispatch;
use crate::dispatch::pending_call::Outcomes;
use crate::inbox::residents;
use crate::orchestrator_error::OrchestratorError;
use crate::services::Inner;
use crate::services::Prepared;
use crate::task::compact;
use crate::task::decide::{self, Step};
use crate::task::flush::Flushed;
use crate::task::limits::{self, LimitContext, LimitReached};
use crate::task::output;
use crate::task::run_slots::Running;
use crate::task::state::TaskState;
use crate::task::tools;

/// Runs a task until it has ended, is suspended, or the orchestrator shuts down.
pub(crate) async fn run(
    inner: Arc<Inner>,
    task_id: &TaskId,
    running: Arc<Running>,
) -> Result<Left, OrchestratorError> {
    let Prepared { state, trees, thinking, .. } = inner.prepared(task_id).await?;
    if !state.status.is_terminal() {
        inner.check_model(&state)?;
    }
    let at = if thinking.is_some() { AgentState::Thinking } else { AgentState::Idle };
    let agent_id = thinking.unwrap_or_else(|| AgentId::from(inner.world.ids.next()));
    let mut work =
        Work { inner, state, trees, agent_id, at, unwritten: vec![], ending_from: None, running };
    if !work.state.status.is_terminal() && !work.is_left_to_others() {
        work.rejoin().await?;
        work.rejoin_requests().await?;
        for (until, request) in work.state.awaited_until() {
            work.inner.watch_answer(until, task_id.clone(), request);
        }
    }
    let left = work.laps().await?;
    if left != Left::Ended {
        let Work { inner, state, trees, .. } = work;
        inner.keep_at_hand(state, trees);
        return Ok(left);
    }
    // The process that recorded the end may have died before it woke the waiters.
    work.inner.tell_end(&work.state);
    let ended_early = matches!(work.state.status, TaskStatus::Failed | TaskStatus::Canceled);
    if work.state.has_children && ended_early {
        // Their owner has ended.
        work.inner.cancel_below(task_id).await?;
    }
    Ok(left)
}

/// Why a run returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// The task has ended.
    Ended,
    /// It waits for a user or a client.
    Waiting,
    /// It waits for other tasks or messages.
    Resting,
}

/// One run of a task.
pub(crate) struct Work {
    pub(crate) inner: Arc<Inner>,
    /// State of the task, including events that are not written yet.
    pub(crate) state: TaskState,
    /// Totals of the task and its ancestors, its own first.
    pub(crate) trees: Vec<Arc<Tree>>,
    /// Id of the agent; each run has a new one.
    pub(crate) agent_id: AgentId,
    pub(crate) at: AgentState,
    pub(crate) unwritten: Vec<EventBody>,
    /// Index in `unwritten` of the first event of the task's end. The end is decided again when
    /// another writer was first.
    pub(crate) ending_from: Option<usize>,
    pub(crate) running: Arc<Running>,
}

impl Work {
    /// Runs steps until there is nothing to do.
    async fn laps(&mut self) -> Result<Left, OrchestratorError> {
        let work = self;
        loop {
            work.running.beat();
            if work.running.cancel.is_cancelled() && !work.state.status.is_terminal() {
                work.cancel_elsewhere().await?;
                if !work.state.status.is_terminal() {
                    work.end(TaskStatus::Canceled, None);
                }
            }
            if work.inner.stop.is_cancelled() {
                // Known results are recorded; the rest is done by the next process.
                return work.flush().await.map(|_| work.left());
            }
            work.inner.settle_purse(work.state.created.payer.as_deref()).await?;
            let step = work.decide();
            work.go_on_spending(&step);
            if work.runs_elsewhere(&step) {
                work.delegate().await?;
                continue;
            }
            if work.leaves_to_above(&step) {
                return work.flush().await.map(|_| work.left());
            }
            match step {
                Step::Over | Step::Rest => match work.rest().await? {
                    Flushed::Kept | Flushed::Over => return Ok(work.left()),
                    Flushed::Moved => {}
                },
                Step::Idle => {
                    work.walk_to(AgentState::Idle);
                    if work.rest().await? != Flushed::Moved {
                        return Ok(work.left());
                    }
                }
                Step::Ask => work.ask().await?,
                Step::Call(pending) => work.call(pending).await?,
                Step::Settle(calls) => work.settle(calls).await?,
                Step::Remind => work.wait_for(WaitingFor::ToolResult),
                Step::Report(tasks) => work.report(tasks).await?,
                Step::Expire(ids) => work.expire(ids).await?,
                Step::TimeOut(ids) => work.time_out(ids).await?,
                Step::Answer(answer) => work.answer_owed(answer).await?,
                Step::Take(ids) => work.take(&ids),
                Step::Compact => work.compact(compact::room(work.window_tokens())).await?,
                Step::Finish(result) => work.finish(result),
                Step::Reject(reason) => work.reject(&reason),
                Step::Refuse(limit) => work.refuse(&limit),
                Step::Halt(spent) => work.halt(&spent),
            }
        }
    }

    /// Writes what is unwritten before the run returns, and sets the deadlines of the task.
    async fn rest(&mut self) -> Result<Flushed, OrchestratorError> {
        let flushed = self.flush().await?;
        // An ended task has no deadlines.
        let ahead = |until: &DateTime<Utc>| *until > self.inner.world.clock.now();
        if !self.state.status.is_terminal() {
            let Ok(budget) = self.budget_due() else { return Ok(Flushed::Moved) };
            let due = [limits::deadline(&self.state), self.state.answers_due()];
            // A new day may have begun since the decision, without a notification.
            for until in due.into_iter().flatten().filter(ahead).chain(budget) {
                self.inner.watch_task(until, self.state.task_id.clone());
            }
        }
        Ok(flushed)
    }

    /// When a task that waits for budget is checked again. `Err` means at once: more may have been
    /// allowed since the decision, before the wait was recorded.
    fn budget_due(&self) -> Result<Option<DateTime<Utc>>, ()> {
        if self.state.waiting_for != Some(WaitingFor::Budget) || self.is_left_to_others() {
            return Ok(None);
        }
        match self.inner.kept_from_model(&self.state.created) {
            Some(BudgetRefusal::Spent(spent)) => Ok(Some(spent.resets_at)),
            Some(BudgetRefusal::PriceUnknown { .. }) | None => Err(()),
        }
    }

    /// Ends the wait for budget when the task calls its model.
    fn go_on_spending(&mut self, step: &Step) {
        let waits = self.state.waiting_for == Some(WaitingFor::Budget);
        if waits && matches!(step, Step::Ask | Step::Compact) && !self.is_left_to_others() {
            self.push(StatusChanged::new(TaskStatus::Running));
        }
    }

    /// Suspends the task until more may be spent.
    fn halt(&mut self, spent: &BudgetSpent) {
        let status = StatusChanged::new(TaskStatus::InputRequired);
        let (detail, waiting_for) = (Some(spent.detail()), Some(WaitingFor::Budget));
        self.push(StatusChanged { detail, waiting_for, ..status });
    }

    pub(crate) fn push(&mut self, body: impl Into<EventBody>) {
        let body = body.into();
        self.state.apply(&body);
        self.unwritten.push(body);
    }

    fn left(&self) -> Left {
        match self.state.status {
            TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Canceled => Left::Ended,
            TaskStatus::InputRequired => Left::Waiting,
            TaskStatus::Pending | TaskStatus::Running => Left::Resting,
        }
    }

    fn decide(&self) -> Step {
        let decide = |outcomes: &Outcomes| {
            let standing = LimitContext {
                now: self.inner.world.clock.now(),
                scopes: self.trees.iter().map(|tree| tree.scope()).collect(),
                outcomes,
                prices: &self.inner.world.prices,
                window_tokens: self.window_tokens(),
                budget: self.inner.kept_from_model(&self.state.created),
            };
            decide::next(&self.state, &standing)
        };
        // Most tasks wait for no other task and skip the lock.
        if self.state.flights.is_empty() && self.state.detached.is_empty() {
            return decide(&Outcomes::new());
        }
        self.inner.kin.outcomes(&self.state.task_id, decide)
    }

    /// Starts a new agent: another definition took over the task.
    pub(crate) fn replace_agent(&mut self) {
        self.agent_id = AgentId::from(self.inner.world.ids.next());
        self.at = AgentState::Idle;
    }

    pub(crate) fn window_tokens(&self) -> Option<u64> {
        let model = self.state.created.model.as_ref()?;
        self.inner.world.models.window_tokens(model)
    }

    /// Moves the agent along its state cycle up to `to`.
    pub(crate) fn walk_to(&mut self, to: AgentState) {
        while self.at != to {
            let (from, next) = (self.at, self.at.next());
            self.at = next;
            self.push(StateChanged { agent_id: self.agent_id, from, to: next });
        }
    }

    pub(crate) fn end(&mut self, status: TaskStatus, detail: Option<Value>) {
        self.ending_from.get_or_insert(self.unwritten.len());
        // The parent orchestrator answers open requests in that case.
        if self.inner.world.settings.dispatch == Dispatch::Here {
            for answer in residents::last_answers(&self.state, status) {
                self.push(answer);
            }
        }
        self.push(StatusChanged { detail, ..StatusChanged::new(status) });
    }

    /// Fires when the task is canceled, its time is over, or the orchestrator shuts down.
    pub(crate) fn interruption(&self) -> Cancel {
        let (cancel, stop) = (self.running.cancel.clone(), self.inner.stop.clone());
        let left = limits::deadline(&self.state)
            .map(|until| (until - self.inner.world.clock.now()).to_std().unwrap_or_default());
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
    fn take(&mut self, ids: &[InteractionId]) {
        let find = |id: &InteractionId| self.state.queue.iter().find(|queued| queued.id == *id);
        let taken: Vec<_> = ids.iter().filter_map(find).cloned().collect();
        for queued in taken {
            let message =
                Arc::new(Message::User(queued.user_message(self.inner.world.clock.now())));
            self.push(MessageAppended { message, queued: Some(queued.id) });
        }
    }

    pub(crate) fn result(&mut self, call: &ToolCallBlock, result: ToolResult) {
        let message = tools::message(call, result, self.inner.world.clock.now());
        self.push(MessageAppended::new(message));
    }

    fn finish(&mut self, result: Value) {
        self.ending_from = Some(self.unwritten.len());
        for call in self.finals() {
            self.result(&call, ToolResult::text("delivered"));
        }
        self.walk_to(AgentState::ToolCall);
        self.walk_to(AgentState::Idle);
        self.end(TaskStatus::Completed, Some(result));
    }

    fn reject(&mut self, reason: &str) {
        self.push(antiphon_core::OutputRejected { reason: reason.to_owned() });
        let text = format!(
            "The result does not fit its schema: {reason}. Call `final` again with a `result` \
             that does."
        );
        let finals = self.finals();
        for call in &finals {
            self.result(call, ToolResult::failed(&text));
        }
        if finals.is_empty() {
            let now = self.inner.world.clock.now();
            self.push(MessageAppended::new(antiphon_core::UserMessage::text(text, now)));
        }
        self.walk_to(AgentState::Idle);
    }

    pub(crate) fn refuse(&mut self, limit: &LimitReached) {
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
    fn finals(&self) -> Vec<ToolCallBlock> {
        let last = self.state.last_lap();
        let calls = last.into_iter().flat_map(|(answer, _)| answer.tool_calls());
        calls.filter(|call| output::is_final(call)).cloned().collect()
    }
}
