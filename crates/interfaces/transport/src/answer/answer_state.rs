//! State of an answer: the part that its reader got, and the record in the journal.
//!
//! Text that was sent cannot be taken back: a message that does not start with it ends in an error. When an answer
//! breaks off and the model is asked again, its text is superseded, and the caller decides what its client gets.

use std::collections::{HashSet, VecDeque};

use antiphon_core::port::{Clock, SystemClock};
use antiphon_core::{
    AssistantMessage, Event, EventBody, Message, OutageWait, Seq, StatusChanged, StopReason,
    StreamEvent, TaskStatus, ToolCallBlock, ToolCallId, Usage,
};
use antiphon_runtime::{Delta, DeltaEvent};
use chrono::{DateTime, Utc};
use serde_json::Value;

use super::answer_error::AnswerError;
use super::answer_part::{AnswerEnd, AnswerPart, FinishReason, FinishedStep, ModelAway, StepPart};

/// Separator between the texts of two turns.
const SEPARATOR: &str = "\n\n";

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
pub(super) struct AnswerState {
    /// Whether the task has started. Earlier messages are the history that the client sent.
    started: bool,
    format: TextFormat,
    /// The last journal event that was read.
    pub(super) seq: Seq,
    /// Its time.
    at: DateTime<Utc>,
    /// The last one that superseded an answer.
    superseded_at: Seq,
    /// An outage of the model that the caller does not know.
    pub(super) away: Option<ModelAway>,
    /// Number of tool calls of the task.
    calls: u32,
    pub(super) turn: u32,
    /// Parts that are ready.
    pub(super) ready: VecDeque<AnswerPart>,
    /// Whether the deltas of this turn are all there, from its beginning.
    pub(super) follows_deltas: bool,
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
    pub(super) end: Option<AnswerEnd>,
}

impl AnswerState {
    /// Nothing yet. `follows_deltas`: deltas are there from the beginning.
    pub(super) fn new(follows_deltas: bool) -> Self {
        Self { follows_deltas, ..Self::default() }
    }

    /// New text or thinking of this turn. Text that was yielded before is left out. A delta after a gap is ignored: the
    /// journal has the whole message.
    pub(super) fn add_delta(&mut self, delta: Delta) -> Option<AnswerPart> {
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
    pub(super) fn read(&mut self, event: Event) -> Result<(), AnswerError> {
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
        let step = FinishedStep::of(answer, &self.clients);
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
    pub(super) fn waits_for_client(&self) -> bool {
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
