//! The loop of one task: decide, write, act.

use std::sync::Arc;

use antiphon_core::port::{Append, Expected, JournalError};
use antiphon_core::{
    AgentId, AgentState, AssistantMessage, Cancel, Effect, EventBody, Message, MessageAppended,
    MessageStream, Request, Seq, StateChanged, StatusChanged, StopReason, StreamError, TaskId,
    TaskStatus, ToolCallBlock, ToolResult, ToolStarted, UsageRecorded, sendable,
};
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::orchestrator::{Delta, Inner, OrchestratorError};
use crate::state::{Pending, Step, TaskState, is_final};
use crate::tools;

/// Works on a task until it is over, or until everything is brought to rest.
pub(crate) async fn run(
    inner: Arc<Inner>,
    task_id: &TaskId,
    cancel: CancellationToken,
) -> Result<(), OrchestratorError> {
    let state = inner.load(task_id).await?;
    let agent_id = AgentId::from(inner.world.ids.next());
    let mut work = Work { inner, state, agent_id, at: AgentState::Idle, unwritten: vec![], cancel };
    loop {
        if work.cancel.is_cancelled() && !work.state.status.is_terminal() {
            work.end(TaskStatus::Canceled, None);
        }
        if work.inner.stop.is_cancelled() {
            // What is known is kept; what is left to do is done another time.
            return work.flush().await.map(drop);
        }
        match work.state.next() {
            Step::Over => return work.flush().await.map(drop),
            Step::Ask => work.ask().await?,
            Step::Call(pending) => work.call(pending).await?,
            Step::Finish(result) => work.finish(result),
            Step::Refuse(limit) => {
                let error = limit.to_string();
                let detail = json!({ "code": "limit_reached", "error": error, "limit": limit });
                work.end(TaskStatus::Failed, Some(detail));
            }
        }
    }
}

struct Work {
    inner: Arc<Inner>,
    /// The task, with what is not written yet.
    state: TaskState,
    /// A task that is taken up again has a fresh agent.
    agent_id: AgentId,
    at: AgentState,
    unwritten: Vec<EventBody>,
    cancel: CancellationToken,
}

impl Work {
    fn push(&mut self, body: impl Into<EventBody>) {
        let body = body.into();
        self.state.apply(&body);
        self.unwritten.push(body);
    }

    /// Walks the agent along its lap.
    fn walk_to(&mut self, to: AgentState) {
        while self.at != to {
            let (from, next) = (self.at, self.at.next());
            self.at = next;
            self.push(StateChanged { agent_id: self.agent_id, from, to: next });
        }
    }

    fn end(&mut self, status: TaskStatus, detail: Option<Value>) {
        self.push(StatusChanged { status, detail });
    }

    /// Makes durable what is not. What others wrote meanwhile comes before it; if that was the
    /// end of the task, what is left unsaid stays so. Says whether the task goes on.
    async fn flush(&mut self) -> Result<bool, OrchestratorError> {
        while !self.unwritten.is_empty() {
            let written = self.state.seq.0 - self.unwritten.len() as u64;
            let append = Append {
                task_id: self.state.task_id.clone(),
                expected: Expected::At(Seq(written)),
                at: self.inner.world.clock.now(),
                events: self.unwritten.clone(),
                key: None,
            };
            match self.inner.append(append).await {
                Ok(_) => self.unwritten.clear(),
                Err(JournalError::Stale { .. } | JournalError::Ended { .. }) => {
                    self.state = self.inner.load(&self.state.task_id).await?;
                    let unwritten = std::mem::take(&mut self.unwritten);
                    if self.state.status.is_terminal() {
                        return Ok(false);
                    }
                    for body in unwritten {
                        self.push(body);
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(!self.state.status.is_terminal())
    }

    /// Fires when the task is canceled or everything comes to rest.
    fn interruption(&self) -> Cancel {
        let (cancel, stop) = (self.cancel.clone(), self.inner.stop.clone());
        Cancel::when(async move {
            tokio::select! {
                () = cancel.cancelled() => {}
                () = stop.cancelled() => {}
            }
        })
    }

    async fn ask(&mut self) -> Result<(), OrchestratorError> {
        if self.state.status != TaskStatus::Running {
            self.push(StatusChanged { status: TaskStatus::Running, detail: None });
        }
        self.walk_to(AgentState::Thinking);
        if !self.flush().await? {
            return Ok(());
        }
        match self.answer().await {
            Ok(answer) => {
                let refused = broke_off(&answer).then(|| answer.raw_stop_reason.clone());
                self.take(answer);
                if let Some(why) = refused {
                    let error = format!("the model stopped without an answer: {why}");
                    let detail = json!({ "code": "refused", "error": error });
                    self.end(TaskStatus::Failed, Some(detail));
                }
            }
            Err(Broken { partial, error: StreamError::Canceled }) => {
                // At rest, nothing is said: the model is asked again another time.
                if self.cancel.is_cancelled() {
                    self.keep(partial);
                }
            }
            Err(Broken { partial, error }) => {
                self.keep(partial);
                let code = match &error {
                    StreamError::Provider(error) => error.code(),
                    StreamError::Canceled | StreamError::Closed => "interrupted",
                };
                let detail = json!({ "code": code, "error": error.to_string() });
                self.end(TaskStatus::Failed, Some(detail));
            }
        }
        Ok(())
    }

    /// One answer of the model, shown to whoever watches as it comes.
    async fn answer(&self) -> Result<AssistantMessage, Broken> {
        let created = &self.state.created;
        let refused = |message: String| Broken {
            partial: None,
            error: antiphon_core::ProviderError::InvalidRequest { message }.into(),
        };
        let model =
            created.model.as_ref().ok_or_else(|| refused("no model is named".to_owned()))?;
        let provider = self.inner.world.models.provider(model).map_err(refused)?;
        let request = Request {
            model: model.model().to_owned(),
            system_prompt: created.system_prompt.clone(),
            messages: sendable(&self.state.messages),
            tools: self.inner.world.tools.tools(),
            max_tokens: created.limits.answer_tokens_max,
            ..Request::default()
        };
        let now = self.inner.world.clock.now();
        let mut stream = MessageStream::open(&*provider, request, self.interruption(), now);
        loop {
            match stream.next().await {
                Ok(Some(event)) => {
                    let task_id = self.state.task_id.clone();
                    // Nobody may be watching.
                    let _ = self.inner.deltas.send(Delta::new(task_id, event));
                }
                Ok(None) => break,
                Err(error) => return Err(Broken { partial: stream.message().ok(), error }),
            }
        }
        stream.message().map_err(|error| refused(error.to_string()))
    }

    fn take(&mut self, answer: AssistantMessage) {
        let model = self.state.created.model.as_ref();
        let model = answer.model.as_ref().or(model).map(ToString::to_string).unwrap_or_default();
        let usage = answer.usage;
        self.push(MessageAppended { message: answer.into() });
        self.push(UsageRecorded { model, usage });
        self.walk_to(AgentState::ToolCall);
    }

    /// Keeps what there was of an answer that broke off. It is never sent to a model again.
    fn keep(&mut self, partial: Option<AssistantMessage>) {
        if let Some(partial) = partial.filter(|partial| !partial.content.is_empty()) {
            self.push(MessageAppended { message: partial.into() });
        }
    }

    /// Runs calls: neighbors that change nothing side by side, all others one after the other.
    async fn call(&mut self, pending: Vec<Pending>) -> Result<(), OrchestratorError> {
        // A task that is taken up again in the middle of a lap: its agent is a fresh one.
        self.walk_to(AgentState::ToolCall);
        let mut waiting = pending.into_iter().peekable();
        while let Some(first) = waiting.next() {
            if let Some(false) = first.cut_off.map(Effect::may_run_again) {
                self.result(&first.call, tools::outcome_unknown());
                continue;
            }
            let mut group = vec![first.call];
            if self.effect(&group[0]) == Effect::ReadOnly {
                while let Some(next) = waiting.next_if(|next| {
                    next.cut_off.is_none_or(Effect::may_run_again)
                        && self.effect(&next.call) == Effect::ReadOnly
                }) {
                    group.push(next.call);
                }
            }
            if !self.run(group).await? {
                return Ok(());
            }
        }
        self.walk_to(AgentState::Idle);
        Ok(())
    }

    /// Runs a group of calls at once. Says whether to go on.
    async fn run(&mut self, group: Vec<ToolCallBlock>) -> Result<bool, OrchestratorError> {
        for call in &group {
            let (tool_call_id, tool_name) = (call.id.clone(), call.name.clone());
            self.push(ToolStarted { tool_call_id, tool_name, effect: self.effect(call) });
        }
        if !self.flush().await? {
            return Ok(false);
        }
        let executor = Arc::clone(&self.inner.world.tools);
        let runs = group.iter().map(|call| tools::run(&*executor, call, self.interruption()));
        let results = join_all(runs).await;
        for (call, result) in group.iter().zip(results) {
            match result {
                Some(result) => self.result(call, result),
                None if self.cancel.is_cancelled() => {
                    self.result(call, ToolResult::failed("canceled"));
                }
                // Cut off to come to rest: recovery decides what to make of it.
                None => {}
            }
        }
        Ok(!self.cancel.is_cancelled() && !self.inner.stop.is_cancelled())
    }

    fn result(&mut self, call: &ToolCallBlock, result: ToolResult) {
        let message = tools::message(call, result, self.inner.world.clock.now());
        self.push(MessageAppended { message: message.into() });
    }

    /// A tool nobody knows does nothing.
    fn effect(&self, call: &ToolCallBlock) -> Effect {
        self.inner.world.tools.effect(&call.name).unwrap_or(Effect::ReadOnly)
    }

    fn finish(&mut self, result: Value) {
        let calls: Vec<ToolCallBlock> = match self.state.messages.iter().rev().find_map(answer) {
            Some(answer) => answer.tool_calls().filter(|call| is_final(call)).cloned().collect(),
            None => Vec::new(),
        };
        for call in calls {
            self.result(&call, ToolResult::text("delivered"));
        }
        self.walk_to(AgentState::ToolCall);
        self.walk_to(AgentState::Idle);
        self.end(TaskStatus::Completed, Some(result));
    }
}

/// The provider called the answer whole, and it is none: filtered, or malformed.
fn broke_off(answer: &AssistantMessage) -> bool {
    matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted)
}

fn answer(message: &Message) -> Option<&AssistantMessage> {
    match message {
        Message::Assistant(answer) => Some(answer),
        Message::User(_) | Message::ToolResult(_) => None,
    }
}

/// An answer that broke off.
struct Broken {
    partial: Option<AssistantMessage>,
    error: StreamError,
}
