//! Watches the task of a chat request: yields its text as it is generated, and how it ends.
//!
//! Text comes from live deltas; the journal has the final messages. Text that was missed is taken from the
//! journal: a watcher that falls behind yields whole messages from then on, and loses nothing. Text that was
//! sent cannot be taken back: a message that does not start with it ends in an error. When an answer breaks
//! off and the model is asked again, its text is superseded, and the caller decides what its client gets.

use std::collections::HashSet;
use std::pin::Pin;

use antiphon_core::port::{Clock, JournalError, SystemClock};
use antiphon_core::{
    Approval, AssistantMessage, Event, EventBody, Message, OutageWait, Position, Seq,
    StatusChanged, StopReason, StreamEvent, TaskId, TaskStatus, TaskSummary, ToolCallBlock,
    ToolCallId, Usage, WaitingFor,
};
use antiphon_runtime::{
    Delta, DeltaEvent, DeltaWatcher, Follower, Orchestrator, OrchestratorError, SerializedDelta,
    WatchedDelta,
};
use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::chat_error::ChatError;

/// Separator between the texts of two turns.
const SEPARATOR: &str = "\n\n";

/// A part of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AnswerPart {
    /// More text.
    Text(String),
    /// The model is away, and the task waits for it.
    Away(ModelAway),
    /// A person has to decide about a call before the task continues.
    Approval(ChatError),
    /// The answer is complete.
    End(AnswerEnd),
}

/// An outage of the model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ModelAway {
    /// The failure.
    pub(crate) error: ChatError,
    /// The last so many bytes of text are superseded: another answer follows.
    pub(crate) superseded_bytes: usize,
    /// Whether the task has called tools. Then a second request would call them again.
    pub(crate) has_acted: bool,
}

/// How an answer ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AnswerEnd {
    pub(crate) reason: FinishReason,
    /// Tool calls for the client.
    pub(crate) calls: Vec<ToolCallBlock>,
    pub(crate) usage: Usage,
    /// Time of the end.
    pub(crate) at: DateTime<Utc>,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FinishReason {
    Stop,
    Length,
    ToolCalls,
    ContentFilter,
}

/// The pending read of the next journal event. It survives deltas, because every new read starts with a look
/// at the journal.
type Reading = Pin<Box<dyn Future<Output = (Follower, Result<Event, JournalError>)> + Send>>;

type Waiting = Pin<Box<dyn Future<Output = Result<TaskSummary, OrchestratorError>> + Send>>;

/// An approval that the task or a descendant needs, and the last event of the task when that was found.
type Asking = Pin<Box<dyn Future<Output = Result<(Approval, Seq), OrchestratorError>> + Send>>;

/// Watches the task of a chat request.
pub(crate) struct AnswerWatcher {
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
    needs_approval: Option<(Seq, ChatError)>,
    /// Whether `conclude` was called since the last journal event.
    concluded: bool,
    answer: AnswerState,
}

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum AnswerFormat {
    /// The text of the messages.
    #[default]
    Text,
    /// The result of the task, as JSON.
    Json,
}

/// The answer so far.
#[derive(Default)]
struct AnswerState {
    /// Whether the task has started. Earlier messages are the history that the client sent.
    started: bool,
    format: AnswerFormat,
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
    usage: Usage,
    end: Option<AnswerEnd>,
}

impl AnswerWatcher {
    /// `follower` and `deltas` start at the beginning of the task.
    pub(crate) fn new(
        orchestrator: &Orchestrator,
        task_id: TaskId,
        follower: Option<Follower>,
        deltas: Option<DeltaWatcher>,
    ) -> Self {
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
            answer: AnswerState::default(),
        }
    }

    /// The next part. Cancel safe: a part that was not returned is returned by the next call.
    pub(crate) async fn next(&mut self) -> Result<AnswerPart, ChatError> {
        loop {
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
                            return Err(ChatError::native(OrchestratorError::from(error)).await);
                        }
                    };
                    self.concluded = false;
                    if std::mem::take(&mut self.is_suspended) {
                        self.waiting = None;
                    }
                    if let Some(text) = self.answer.read(event)? {
                        return Ok(AnswerPart::Text(text));
                    }
                }
                delta = receive(&mut self.deltas), if receives => match delta {
                    Some(WatchedDelta::Delta(delta)) => {
                        self.held = Some(SerializedDelta::into_value(delta));
                    }
                    Some(WatchedDelta::Missed(_)) | None => self.deltas = None,
                },
                asked = &mut self.asking => {
                    self.asking = Box::pin(std::future::pending());
                    match asked {
                        Ok((approval, seq)) => {
                            let error = ChatError::needs_approval(&self.task_id, &approval);
                            self.needs_approval = Some((seq, error));
                        }
                        Err(error) => return Err(ChatError::native(error).await),
                    }
                }
                stopped = waiting => match stopped {
                    // The client does not wait until the spend limit resets.
                    Ok(task) if task.waiting_for == Some(WaitingFor::Budget) => {
                        let payer = task.payer;
                        let spent = self.orchestrator.check_budget(payer.as_deref(), None).await;
                        self.rest();
                        if let Err(error) = spent {
                            return Err(ChatError::of(error).await);
                        }
                    }
                    // The task is suspended, or the journal is about to record its end.
                    Ok(_) => self.rest(),
                    Err(OrchestratorError::Stopping) => return Err(ChatError::closing()),
                    Err(error) => return Err(ChatError::native(error).await),
                },
            }
        }
    }

    /// A part that needs no more reading.
    fn ready(&mut self) -> Option<AnswerPart> {
        if let Some(away) = self.answer.away.take() {
            return Some(AnswerPart::Away(away));
        }
        let reached = |wait: &mut (Seq, ChatError)| wait.0 <= self.answer.seq;
        if let Some((_, error)) = self.needs_approval.take_if(reached) {
            return Some(AnswerPart::Approval(error));
        }
        let read =
            |delta: &mut Delta| delta.turn <= self.answer.turn && delta.after <= self.answer.seq;
        let text = self.held.take_if(read).and_then(|delta| self.answer.add_delta(delta));
        text.map(AnswerPart::Text)
    }

    /// The task is suspended: nothing more is asked until its next event.
    fn rest(&mut self) {
        self.waiting = Some(Box::pin(std::future::pending()));
        self.is_suspended = true;
    }

    /// Ends the task with the tool calls for the client.
    async fn conclude(&mut self) -> Result<(), ChatError> {
        match self.orchestrator.conclude(&self.task_id).await {
            // The journal has the remaining work, or the end.
            Ok(_) | Err(OrchestratorError::Ended { .. }) => self.concluded = true,
            Err(error) => return Err(ChatError::native(error).await),
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
    /// New text of this turn. Text that was yielded before is left out. A delta after a gap is ignored: the
    /// journal has the whole message.
    fn add_delta(&mut self, delta: Delta) -> Option<String> {
        match delta.event {
            DeltaEvent::Answer(StreamEvent::TextDelta { delta: text })
                if delta.turn == self.turn
                    && delta.after >= self.superseded_at
                    && self.format == AnswerFormat::Text
                    && !self.whole =>
            {
                let known = self.yielded.len().checked_sub(delta.text_at)?;
                text.get(known..).and_then(|more| self.add_text(more))
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

    /// New text of a journal event.
    fn read(&mut self, event: Event) -> Result<Option<String>, ChatError> {
        self.seq = event.seq;
        self.at = event.at;
        if let EventBody::TaskCreated(created) = &event.body {
            let structured = created.output_schema.is_some();
            self.format = if structured { AnswerFormat::Json } else { AnswerFormat::Text };
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
            }
        } else if let EventBody::ToolStarted(_) | EventBody::Dispatched(_) = &event.body {
            self.calls += 1;
        } else if let EventBody::ToolRequested(requested) = event.body {
            self.requested.insert(requested.tool_call_id);
        }
        Ok(None)
    }

    fn append(&mut self, message: &Message) -> Result<Option<String>, ChatError> {
        match message {
            Message::Assistant(answer) => return self.answer(answer),
            Message::ToolResult(result) => {
                self.open.retain(|call| call.id != result.tool_call_id);
            }
            Message::User(_) => {}
        }
        Ok(None)
    }

    /// Text of a whole or interrupted message that was not yielded.
    fn answer(&mut self, answer: &AssistantMessage) -> Result<Option<String>, ChatError> {
        self.whole = true;
        self.stop = Some(answer.stop_reason);
        self.open = answer.tool_calls().cloned().collect();
        self.requested.clear();
        if self.format == AnswerFormat::Json {
            return Ok(None);
        }
        let text = answer.text();
        match text.strip_prefix(self.yielded.as_str()) {
            Some(rest) => Ok(self.add_text(rest)),
            None => Err(ChatError::begun_again()),
        }
    }

    fn wait_for_model(&mut self, wait: &OutageWait, change: &StatusChanged) {
        let mut superseded_bytes = 0;
        if wait.superseded {
            self.superseded_at = self.seq;
            let yielded = std::mem::take(&mut self.yielded);
            if !yielded.is_empty() {
                let separator = if self.has_earlier_text { SEPARATOR.len() } else { 0 };
                superseded_bytes = yielded.len() + separator;
            }
        }
        let error = ChatError::away(wait, change.detail.as_ref(), SystemClock.now());
        self.away = Some(ModelAway { error, superseded_bytes, has_acted: self.calls > 0 });
    }

    /// Whether all open tool calls are for the client.
    fn waits_for_client(&self) -> bool {
        let is_for_client = |call: &ToolCallBlock| self.requested.contains(&call.id);
        !self.open.is_empty() && self.open.iter().all(is_for_client)
    }

    fn change(&mut self, change: &StatusChanged) -> Result<Option<String>, ChatError> {
        match change.status {
            TaskStatus::Pending | TaskStatus::Running | TaskStatus::InputRequired => Ok(None),
            TaskStatus::Completed => Ok(self.complete(change.detail.as_ref())),
            TaskStatus::Canceled => Err(ChatError::canceled()),
            TaskStatus::Failed => {
                let refused = |detail: &Value| detail["code"] == "refused";
                if change.detail.as_ref().is_some_and(refused) {
                    self.end(FinishReason::ContentFilter, Vec::new());
                    return Ok(None);
                }
                Err(ChatError::failed(change.detail.as_ref()))
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
            Some(result) if self.format == AnswerFormat::Json => Some(result.to_string()),
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
