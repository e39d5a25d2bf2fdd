//! Watches the task of a request: yields its text and thinking as they are generated, and how it ends.
//!
//! Text comes from live deltas; the journal has the final messages. Text that was missed is taken from the
//! journal: a watcher that falls behind yields whole messages from then on, and loses nothing. Text that was
//! sent cannot be taken back: a message that does not start with it ends in an error. When an answer breaks
//! off and the model is asked again, its text is superseded, and the caller decides what its client gets.

use std::collections::{HashSet, VecDeque};
use std::pin::Pin;

use antiphon_core::port::{Clock, JournalError, SystemClock};
use antiphon_core::{
    Approval, AssistantBlock, AssistantMessage, Event, EventBody, Message, ModelRef, OutageWait,
    Position, Seq, StatusChanged, StopReason, StreamEvent, TaskId, TaskStatus, TaskSummary,
    ToolCallBlock, ToolCallId, Usage, WaitingFor,
};
use antiphon_runtime::{
    Delta, DeltaEvent, DeltaWatcher, Follower, Orchestrator, OrchestratorError, SerializedDelta,
    WatchedDelta,
};
use chrono::{DateTime, Utc};
use serde_json::Value;

use super::answer_error::AnswerError;

/// Separator between the texts of two turns.
const SEPARATOR: &str = "\n\n";

/// A part of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerPart {
    /// More text.
    Text(String),
    /// More thinking.
    Thinking(String),
    /// The journal has a whole answer of the model. Its texts and thinking were yielded.
    Step(FinishedStep),
    /// The model is away, and the task waits for it.
    Away(ModelAway),
    /// A person has to decide about a call before the task continues.
    Approval(AnswerError),
    /// The answer is complete.
    End(AnswerEnd),
}

/// An outage of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelAway {
    /// The failure.
    pub error: AnswerError,
    /// The last so many bytes of text are superseded: another answer follows.
    pub superseded_bytes: usize,
    /// The answer broke off, and what was shown of it does not count.
    pub superseded: bool,
    /// Whether the task has called tools. Then a second request would call them again.
    pub has_acted: bool,
}

/// A whole answer of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedStep {
    /// What was said and thought, in order; calls are not in it.
    pub parts: Vec<StepPart>,
    /// The model that wrote it.
    pub model: Option<ModelRef>,
    /// Whether the client sees all of the answer, so that it may send its thinking back. Calls of the agent's own tools
    /// are hidden.
    pub is_whole_for_client: bool,
}

/// Consecutive blocks of an answer of one kind.
#[derive(Debug, Clone, PartialEq)]
pub enum StepPart {
    /// Text.
    Text(String),
    /// Thinking, with opaque blocks.
    Thought {
        /// The text of the thinking; may be empty.
        text: String,
        /// The blocks.
        blocks: Vec<AssistantBlock>,
        /// How many texts and calls follow in the answer.
        followed_by: usize,
    },
}

/// How an answer ended.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerEnd {
    /// Why it ended.
    pub reason: FinishReason,
    /// Tool calls for the client.
    pub calls: Vec<ToolCallBlock>,
    /// Tokens of all steps.
    pub usage: Usage,
    /// Time of the end.
    pub at: DateTime<Utc>,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishReason {
    /// The answer is complete.
    Stop,
    /// The limit of tokens was reached.
    Length,
    /// The client has to run tools.
    ToolCalls,
    /// The model stopped without an answer.
    ContentFilter,
}

/// The pending read of the next journal event. It survives deltas, because every new read starts with a look
/// at the journal.
type Reading = Pin<Box<dyn Future<Output = (Follower, Result<Event, JournalError>)> + Send>>;

type Waiting = Pin<Box<dyn Future<Output = Result<TaskSummary, OrchestratorError>> + Send>>;

/// An approval that the task or a descendant needs, and the last event of the task when that was found.
type Asking = Pin<Box<dyn Future<Output = Result<(Approval, Seq), OrchestratorError>> + Send>>;

/// Watches the task of a request.
pub struct AnswerWatcher {
    orchestrator: Orchestrator,
    task_id: TaskId,
    reading: Reading,
    /// Absent after a gap.
    deltas: Option<DeltaWatcher>,
    /// A delta of a turn that the journal has not reached.
    held: Option<Delta>,
    /// Ready when the task ends or is suspended. It is made again when the task goes on.
    waiting: Option<Waiting>,
    /// Whether `waiting` has been ready.
    is_suspended: bool,
    asking: Asking,
    /// The task needs an approval since this journal event.
    needs_approval: Option<(Seq, AnswerError)>,
    /// Whether `conclude` was called since the last journal event.
    concluded: bool,
    answer: AnswerState,
}

/// The format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum TextFormat {
    /// The text of the messages.
    #[default]
    Text,
    /// The result of the task, as JSON.
    Json,
}

/// The answer so far.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about the answer")]
#[derive(Default)]
struct AnswerState {
    /// Whether the task has started. Earlier messages are the history that the client sent.
    started: bool,
    format: TextFormat,
    /// The last journal event that was read.
    seq: Seq,
    /// Its time.
    at: DateTime<Utc>,
    /// The last one that superseded an answer.
    superseded_at: Seq,
    /// An outage of the model that the caller does not know.
    away: Option<ModelAway>,
    /// Number of tool calls of the task.
    calls: u32,
    turn: u32,
    /// Parts that are ready.
    ready: VecDeque<AnswerPart>,
    /// Whether the deltas of this turn are all there, from its beginning.
    follows_deltas: bool,
    /// Thinking of this turn that was yielded.
    thought: String,
    /// Text of this turn that was yielded.
    yielded: String,
    /// Whether the journal has the message of this turn.
    whole: bool,
    /// Whether an earlier turn had text.
    has_earlier_text: bool,
    stop: Option<StopReason>,
    /// Tool calls of the last message without a result.
    open: Vec<ToolCallBlock>,
    /// Tool calls for the client.
    requested: HashSet<ToolCallId>,
    /// Names of the client's tools.
    clients: HashSet<String>,
    usage: Usage,
    end: Option<AnswerEnd>,
}

impl AnswerWatcher {
    /// `follower` and `deltas` start at the beginning of the task.
    pub fn new(
        orchestrator: &Orchestrator,
        task_id: TaskId,
        follower: Option<Follower>,
        deltas: Option<DeltaWatcher>,
    ) -> Self {
        let follows_deltas = deltas.is_some();
        let from_journal = || orchestrator.follow(Some(task_id.clone()), Position(0));
        Self {
            reading: read_on(follower.unwrap_or_else(from_journal)),
            asking: Box::pin(needed_approval(orchestrator.clone(), task_id.clone())),
            orchestrator: orchestrator.clone(),
            task_id,
            deltas,
            held: None,
            waiting: None,
            is_suspended: false,
            needs_approval: None,
            concluded: false,
            answer: AnswerState { follows_deltas, ..AnswerState::default() },
        }
    }

    /// The next part. Cancel safe: a part that was not returned is returned by the next call.
    pub async fn next(&mut self) -> Result<AnswerPart, AnswerError> {
        loop {
            if let Some(part) = self.answer.ready.pop_front() {
                return Ok(part);
            }
            if let Some(end) = self.answer.end.take() {
                return Ok(AnswerPart::End(end));
            }
            if !self.concluded && self.answer.waits_for_client() {
                self.conclude().await?;
            }
            if let Some(part) = self.ready() {
                return Ok(part);
            }
            let receives = self.held.is_none();
            let waiting = self.waiting.get_or_insert_with(|| {
                let (orchestrator, task_id) = (self.orchestrator.clone(), self.task_id.clone());
                Box::pin(async move { orchestrator.rest(&task_id).await })
            });
            tokio::select! {
                biased;
                (follower, event) = &mut self.reading => {
                    self.reading = read_on(follower);
                    let event = match event {
                        Ok(event) => event,
                        Err(error) => {
                            return Err(AnswerError::native(OrchestratorError::from(error)).await);
                        }
                    };
                    self.concluded = false;
                    if std::mem::take(&mut self.is_suspended) {
                        self.waiting = None;
                    }
                    self.answer.read(event)?;
                }
                delta = receive(&mut self.deltas), if receives => match delta {
                    Some(WatchedDelta::Delta(delta)) => {
                        self.held = Some(SerializedDelta::into_value(delta));
                    }
                    Some(WatchedDelta::Missed(_)) | None => {
                        self.deltas = None;
                        self.answer.follows_deltas = false;
                    }
                },
                asked = &mut self.asking => {
                    self.asking = Box::pin(std::future::pending());
                    match asked {
                        Ok((approval, seq)) => {
                            let error = AnswerError::needs_approval(&self.task_id, &approval);
                            self.needs_approval = Some((seq, error));
                        }
                        Err(error) => return Err(AnswerError::native(error).await),
                    }
                }
                stopped = waiting => match stopped {
                    // The client does not wait until the spend limit resets.
                    Ok(task) if task.waiting_for == Some(WaitingFor::Budget) => {
                        let payer = task.payer;
                        let spent = self.orchestrator.check_budget(payer.as_deref(), None).await;
                        self.rest();
                        if let Err(error) = spent {
                            return Err(AnswerError::of(error).await);
                        }
                    }
                    // The task is suspended, or the journal is about to record its end.
                    Ok(_) => self.rest(),
                    Err(OrchestratorError::Stopping) => return Err(AnswerError::closing()),
                    Err(error) => return Err(AnswerError::native(error).await),
                },
            }
        }
    }

    /// A part that needs no more reading.
    fn ready(&mut self) -> Option<AnswerPart> {
        if let Some(away) = self.answer.away.take() {
            return Some(AnswerPart::Away(away));
        }
        let reached = |wait: &mut (Seq, AnswerError)| wait.0 <= self.answer.seq;
        if let Some((_, error)) = self.needs_approval.take_if(reached) {
            return Some(AnswerPart::Approval(error));
        }
        let read =
            |delta: &mut Delta| delta.turn <= self.answer.turn && delta.after <= self.answer.seq;
        self.held.take_if(read).and_then(|delta| self.answer.add_delta(delta))
    }

    /// The task is suspended: nothing more is asked until its next event.
    fn rest(&mut self) {
        self.waiting = Some(Box::pin(std::future::pending()));
        self.is_suspended = true;
    }

    /// Ends the task with the tool calls for the client.
    async fn conclude(&mut self) -> Result<(), AnswerError> {
        match self.orchestrator.conclude(&self.task_id).await {
            // The journal has the remaining work, or the end.
            Ok(_) | Err(OrchestratorError::Ended { .. }) => self.concluded = true,
            Err(error) => return Err(AnswerError::native(error).await),
        }
        Ok(())
    }
}

/// The oldest approval that a task or a descendant waits for, as soon as there is one.
async fn needed_approval(
    orchestrator: Orchestrator,
    task_id: TaskId,
) -> Result<(Approval, Seq), OrchestratorError> {
    // An approval on a peer is decided there.
    let approval = orchestrator.approval_needed(&task_id).await?;
    let seq = orchestrator.task_alone(&task_id).await?.seq;
    Ok((approval, seq))
}

fn read_on(mut follower: Follower) -> Reading {
    Box::pin(async move {
        let event = follower.next().await;
        (follower, event)
    })
}

/// The next delta; pends forever when there are no deltas.
async fn receive(deltas: &mut Option<DeltaWatcher>) -> Option<WatchedDelta> {
    match deltas {
        None => std::future::pending().await,
        Some(deltas) => deltas.recv().await,
    }
}

impl AnswerState {
    /// New text or thinking of this turn. Text that was yielded before is left out. A delta after a gap is ignored: the
    /// journal has the whole message.
    fn add_delta(&mut self, delta: Delta) -> Option<AnswerPart> {
        let is_current = delta.turn == self.turn
            && delta.after >= self.superseded_at
            && self.format == TextFormat::Text
            && !self.whole;
        match delta.event {
            DeltaEvent::Answer(StreamEvent::TextDelta { delta: text }) if is_current => {
                let known = self.yielded.len().checked_sub(delta.text_at)?;
                text.get(known..).and_then(|more| self.add_text(more)).map(AnswerPart::Text)
            }
            DeltaEvent::Answer(StreamEvent::ThinkingDelta { delta: more })
                if is_current && self.follows_deltas && !more.is_empty() =>
            {
                self.thought.push_str(&more);
                Some(AnswerPart::Thinking(more))
            }
            // The journal says the same of a superseded answer.
            DeltaEvent::Answer(_) | DeltaEvent::Tool(_) | DeltaEvent::State(_) => None,
        }
    }

    fn add_text(&mut self, text: &str) -> Option<String> {
        if text.is_empty() {
            return None;
        }
        let separator =
            if self.has_earlier_text && self.yielded.is_empty() { SEPARATOR } else { "" };
        self.yielded.push_str(text);
        Some(format!("{separator}{text}"))
    }

    /// Makes what is new in a journal event ready.
    fn read(&mut self, event: Event) -> Result<(), AnswerError> {
        self.seq = event.seq;
        self.at = event.at;
        if let EventBody::TaskCreated(created) = &event.body {
            let structured = created.output_schema.is_some();
            self.format = if structured { TextFormat::Json } else { TextFormat::Text };
            self.clients = created.external_tools.iter().map(|tool| tool.name.clone()).collect();
        } else if let EventBody::StatusChanged(change) = &event.body {
            self.started = true;
            if let Some(wait) = OutageWait::of(change) {
                self.wait_for_model(&wait, change);
            }
            return self.change(change);
        } else if let EventBody::MessageAppended(appended) = &event.body
            && self.started
            && !appended.superseded
        {
            return self.append(&appended.message);
        } else if let EventBody::UsageRecorded(recorded) = &event.body {
            self.usage += recorded.usage;
            if recorded.purpose.is_none() {
                self.turn += 1;
                self.whole = false;
                self.has_earlier_text |= !self.yielded.is_empty();
                self.yielded.clear();
                self.thought.clear();
            }
        } else if let EventBody::ToolStarted(_) | EventBody::Dispatched(_) = &event.body {
            self.calls += 1;
        } else if let EventBody::ToolRequested(requested) = event.body {
            self.requested.insert(requested.tool_call_id);
        }
        Ok(())
    }

    fn append(&mut self, message: &Message) -> Result<(), AnswerError> {
        match message {
            Message::Assistant(answer) => return self.answer(answer),
            Message::ToolResult(result) => {
                self.open.retain(|call| call.id != result.tool_call_id);
            }
            Message::User(_) => {}
        }
        Ok(())
    }

    /// Makes ready what was not yielded of a whole or interrupted message.
    fn answer(&mut self, answer: &AssistantMessage) -> Result<(), AnswerError> {
        self.whole = true;
        self.stop = Some(answer.stop_reason);
        self.open = answer.tool_calls().cloned().collect();
        self.requested.clear();
        let step = self.step(answer);
        if self.format == TextFormat::Text {
            self.catch_up(&step)?;
        }
        self.ready.push_back(AnswerPart::Step(step));
        Ok(())
    }

    /// Yields what is missing of the texts and the thinking of an answer, in their order.
    fn catch_up(&mut self, step: &FinishedStep) -> Result<(), AnswerError> {
        let (mut said, mut thought) = (self.yielded.clone(), self.thought.clone());
        for part in &step.parts {
            match part {
                StepPart::Text(text) => {
                    if let Some(rest) = said.strip_prefix(text.as_str()) {
                        said = rest.to_owned();
                    } else if let Some(rest) = text.strip_prefix(said.as_str()) {
                        said.clear();
                        let text = self.add_text(rest).map(AnswerPart::Text);
                        self.ready.extend(text);
                    } else {
                        return Err(AnswerError::begun_again());
                    }
                }
                StepPart::Thought { text, .. } => {
                    if let Some(rest) = thought.strip_prefix(text.as_str()) {
                        thought = rest.to_owned();
                    } else if let Some(rest) = text.strip_prefix(thought.as_str()) {
                        let rest = rest.to_owned();
                        thought.clear();
                        self.ready.push_back(AnswerPart::Thinking(rest));
                    }
                }
            }
        }
        if said.is_empty() { Ok(()) } else { Err(AnswerError::begun_again()) }
    }

    fn step(&self, answer: &AssistantMessage) -> FinishedStep {
        let is_clients = |call: &ToolCallBlock| self.clients.contains(&call.name);
        let mut parts: Vec<StepPart> = Vec::new();
        let mut followed_by = 0;
        for block in answer.content.iter().rev() {
            match (block, parts.last_mut()) {
                (AssistantBlock::ToolCall(_), _) => followed_by += 1,
                (AssistantBlock::Text(text), Some(StepPart::Text(after))) => {
                    after.insert_str(0, &text.text);
                }
                (AssistantBlock::Text(text), _) => {
                    followed_by += usize::from(!text.text.trim().is_empty());
                    parts.push(StepPart::Text(text.text.clone()));
                }
                (
                    block @ (AssistantBlock::Thinking(_) | AssistantBlock::Opaque(_)),
                    Some(StepPart::Thought { text, blocks, followed_by: after }),
                ) if *after == followed_by => {
                    text.insert_str(0, thinking(block));
                    blocks.insert(0, block.clone());
                }
                (block @ (AssistantBlock::Thinking(_) | AssistantBlock::Opaque(_)), _) => {
                    let (text, blocks) = (thinking(block).to_owned(), vec![block.clone()]);
                    parts.push(StepPart::Thought { text, blocks, followed_by });
                }
            }
        }
        parts.reverse();
        FinishedStep {
            parts,
            model: answer.model.clone(),
            is_whole_for_client: answer.tool_calls().all(is_clients),
        }
    }

    fn wait_for_model(&mut self, wait: &OutageWait, change: &StatusChanged) {
        let mut superseded_bytes = 0;
        if wait.superseded {
            self.superseded_at = self.seq;
            self.thought.clear();
            let yielded = std::mem::take(&mut self.yielded);
            if !yielded.is_empty() {
                let separator = if self.has_earlier_text { SEPARATOR.len() } else { 0 };
                superseded_bytes = yielded.len() + separator;
            }
        }
        let error = AnswerError::away(wait, change.detail.as_ref(), SystemClock.now());
        let (superseded, has_acted) = (wait.superseded, self.calls > 0);
        self.away = Some(ModelAway { error, superseded_bytes, superseded, has_acted });
    }

    /// Whether all open tool calls are for the client.
    fn waits_for_client(&self) -> bool {
        let is_for_client = |call: &ToolCallBlock| self.requested.contains(&call.id);
        !self.open.is_empty() && self.open.iter().all(is_for_client)
    }

    fn change(&mut self, change: &StatusChanged) -> Result<(), AnswerError> {
        match change.status {
            TaskStatus::Pending | TaskStatus::Running | TaskStatus::InputRequired => Ok(()),
            TaskStatus::Completed => {
                let text = self.complete(change.detail.as_ref()).map(AnswerPart::Text);
                self.ready.extend(text);
                Ok(())
            }
            TaskStatus::Canceled => Err(AnswerError::canceled()),
            TaskStatus::Failed => {
                let refused = |detail: &Value| detail["code"] == "refused";
                if change.detail.as_ref().is_some_and(refused) {
                    self.end(FinishReason::ContentFilter, Vec::new());
                    return Ok(());
                }
                Err(AnswerError::failed(change.detail.as_ref()))
            }
        }
    }

    fn complete(&mut self, result: Option<&Value>) -> Option<String> {
        let calls: Vec<ToolCallBlock> = std::mem::take(&mut self.open);
        let calls: Vec<_> =
            calls.into_iter().filter(|call| self.requested.contains(&call.id)).collect();
        if !calls.is_empty() {
            self.end(FinishReason::ToolCalls, calls);
            return None;
        }
        let length = self.stop == Some(StopReason::Length);
        self.end(if length { FinishReason::Length } else { FinishReason::Stop }, Vec::new());
        // A result that no message contains.
        match result {
            Some(result) if self.format == TextFormat::Json => Some(result.to_string()),
            Some(Value::String(text)) if !self.has_earlier_text => self.add_text(text),
            Some(Value::Null | Value::String(_)) | None => None,
            Some(result) if !self.has_earlier_text => Some(result.to_string()),
            Some(_) => None,
        }
    }

    fn end(&mut self, reason: FinishReason, calls: Vec<ToolCallBlock>) {
        self.end = Some(AnswerEnd { reason, calls, usage: self.usage, at: self.at });
    }
}

/// The text of a thinking block; empty for other blocks.
fn thinking(block: &AssistantBlock) -> &str {
    match block {
        AssistantBlock::Thinking(thinking) => &thinking.thinking,
        AssistantBlock::Text(_) | AssistantBlock::ToolCall(_) | AssistantBlock::Opaque(_) => "",
    }
}
