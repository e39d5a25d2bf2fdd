//! Updates of a running task for the editor: events of the journal and live deltas become updates of the
//! session. Only the text and the calls of the task itself are shown; its children are entries of the plan.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use antiphon_client::{DeltaNotice, DeltaPiece, LiveDelta};
use antiphon_core::{
    AssistantBlock, AssistantMessage, Event, EventBody, Message, MessageAppended, OutageWait,
    StatusChanged, StopReason, StreamEvent, TaskId, ToolCallId, WaitingFor,
};
use antiphon_view::display::escaped;
use antiphon_view::text::{cut, one_line};
use antiphon_view::{outage_wait_text, waits_for};
use uuid::Uuid;

use crate::schema::{
    ContentBlock, ContentChunk, MessageId, SessionUpdate, TextContent, ToolCall, ToolCallStatus,
};
use crate::task_plan::TaskPlan;
use crate::tool_call_update::{self, FINAL};

/// Most bytes of a running call's output that are shown, and how often.
const OUTPUT_BYTES_MAX: usize = 16 * 1024;
const OUTPUT_PAUSE: Duration = Duration::from_millis(250);

/// The updates of one turn.
pub(crate) struct TurnUpdates {
    task_id: TaskId,
    root: PathBuf,
    answer: Answer,
    calls: HashMap<ToolCallId, ToolCall>,
    outputs: HashMap<ToolCallId, (String, Instant)>,
    plan: TaskPlan,
    /// The last answer of the task.
    pub(crate) last_text: String,
    pub(crate) last_stop: StopReason,
}

/// The answer that is being written.
struct Answer {
    id: MessageId,
    text_bytes: usize,
    thought_bytes: usize,
}

impl Answer {
    fn new() -> Self {
        let id = MessageId::new(Uuid::new_v4().to_string());
        Self { id, text_bytes: 0, thought_bytes: 0 }
    }

    fn chunk(&self, text: &str) -> ContentChunk {
        ContentChunk::new(ContentBlock::Text(TextContent::new(text))).message_id(self.id.clone())
    }
}

impl TurnUpdates {
    pub(crate) fn new(task_id: TaskId, root: PathBuf) -> Self {
        Self {
            plan: TaskPlan::new(task_id.clone()),
            task_id,
            root,
            answer: Answer::new(),
            calls: HashMap::new(),
            outputs: HashMap::new(),
            last_text: String::new(),
            last_stop: StopReason::EndTurn,
        }
    }

    /// What a delta shows. A delta behind a gap is left out: the event of the whole answer has its text.
    pub(crate) fn delta(&mut self, delta: LiveDelta) -> Option<SessionUpdate> {
        if delta.task_id.as_ref() != Some(&self.task_id) {
            return None;
        }
        match delta.piece {
            DeltaPiece::Answer(StreamEvent::TextDelta { delta: text }) => {
                let begins = self.answer.text_bytes.checked_sub(delta.text_at)?;
                let new = text.get(begins..).filter(|new| !new.is_empty())?;
                self.answer.text_bytes += new.len();
                Some(SessionUpdate::AgentMessageChunk(self.answer.chunk(new)))
            }
            DeltaPiece::Answer(StreamEvent::ThinkingDelta { delta: text }) => {
                self.answer.thought_bytes += text.len();
                Some(SessionUpdate::AgentThoughtChunk(self.answer.chunk(&text)))
            }
            DeltaPiece::Other(DeltaNotice::ToolOutput { tool_call_id, delta }) => {
                self.output(tool_call_id, &delta)
            }
            DeltaPiece::Other(DeltaNotice::AnswerSuperseded { error, .. }) => {
                Some(self.superseded(&error))
            }
            DeltaPiece::Answer(
                StreamEvent::ToolCallBegin { .. }
                | StreamEvent::ToolCallDelta { .. }
                | StreamEvent::ToolCallEnd { .. },
            )
            | DeltaPiece::Other(DeltaNotice::DeltasMissed { .. }) => None,
        }
    }

    fn output(&mut self, call_id: ToolCallId, delta: &str) -> Option<SessionUpdate> {
        let (text, shown_at) =
            self.outputs.entry(call_id.clone()).or_insert_with(|| (String::new(), Instant::now()));
        text.push_str(delta);
        while text.len() > OUTPUT_BYTES_MAX {
            let half = text.floor_char_boundary(text.len() / 2);
            text.drain(..half);
        }
        if shown_at.elapsed() < OUTPUT_PAUSE {
            return None;
        }
        *shown_at = Instant::now();
        Some(SessionUpdate::ToolCallUpdate(tool_call_update::output(&call_id, text)))
    }

    fn superseded(&mut self, error: &str) -> SessionUpdate {
        let reason = cut(&escaped(&one_line(error)));
        self.answer = Answer::new();
        let note = format!("(the answer broke off and is asked for again: {reason})");
        SessionUpdate::AgentThoughtChunk(self.answer.chunk(&note))
    }

    /// What an event of the task or of a descendant shows.
    pub(crate) fn event(&mut self, event: &Event) -> Vec<SessionUpdate> {
        if let Some(plan) = self.plan.event(event) {
            return vec![plan];
        }
        if event.task_id != self.task_id {
            return Vec::new();
        }
        if let EventBody::MessageAppended(appended) = &event.body {
            return self.appended(appended);
        }
        let update = if let EventBody::ToolStarted(started) = &event.body {
            let call = &started.tool_call_id;
            let update = tool_call_update::status(call, ToolCallStatus::InProgress);
            (started.tool_name != FINAL).then_some(SessionUpdate::ToolCallUpdate(update))
        } else if let EventBody::StatusChanged(change) = &event.body {
            self.wait(change)
        } else {
            None
        };
        update.into_iter().collect()
    }

    fn appended(&mut self, appended: &MessageAppended) -> Vec<SessionUpdate> {
        match &*appended.message {
            Message::Assistant(_) if appended.superseded => {
                if self.answer.text_bytes + self.answer.thought_bytes > 0 {
                    return vec![self.superseded("it was not complete")];
                }
                Vec::new()
            }
            Message::Assistant(answer) => self.answered(answer),
            Message::ToolResult(result) => {
                self.outputs.remove(&result.tool_call_id);
                let shown = self.calls.remove(&result.tool_call_id);
                if result.tool_name == FINAL {
                    return Vec::new();
                }
                let ended = tool_call_update::ended(result, shown.as_ref());
                vec![SessionUpdate::ToolCallUpdate(ended)]
            }
            Message::User(_) => Vec::new(),
        }
    }

    /// The part of an answer that no delta has shown, and its calls.
    fn answered(&mut self, answer: &AssistantMessage) -> Vec<SessionUpdate> {
        let mut updates = Vec::new();
        let text = answer.text();
        if self.answer.thought_bytes == 0 {
            for block in &answer.content {
                if let AssistantBlock::Thinking(thinking) = block {
                    let chunk = self.answer.chunk(&thinking.thinking);
                    updates.push(SessionUpdate::AgentThoughtChunk(chunk));
                }
            }
        }
        if let Some(rest) = text.get(self.answer.text_bytes..).filter(|rest| !rest.is_empty()) {
            updates.push(SessionUpdate::AgentMessageChunk(self.answer.chunk(rest)));
        }
        for call in answer.tool_calls().filter(|call| call.name != FINAL) {
            let shown = tool_call_update::requested(call, &self.root);
            self.calls.insert(call.id.clone(), shown.clone());
            updates.push(SessionUpdate::ToolCall(shown));
        }
        (self.last_text, self.last_stop) = (text, answer.stop_reason);
        self.answer = Answer::new();
        updates
    }

    /// Why the task waits, if no person is asked about it.
    fn wait(&self, change: &StatusChanged) -> Option<SessionUpdate> {
        let note = match (OutageWait::of(change), change.waiting_for) {
            (Some(wait), _) => format!("({})", outage_wait_text(&wait)),
            (None, Some(what @ (WaitingFor::Budget | WaitingFor::Storage))) => {
                format!("(waits {})", waits_for(what))
            }
            (None, _) => return None,
        };
        Some(SessionUpdate::AgentThoughtChunk(self.answer.chunk(&note)))
    }

    /// The result of the task, where it is not the text that was shown.
    pub(crate) fn result(&self, change: &StatusChanged) -> Option<SessionUpdate> {
        let result = change.detail.as_ref()?;
        let text = match result.as_str() {
            Some(text) if text.trim() == self.last_text.trim() => return None,
            Some(text) => text.to_owned(),
            None => serde_json::to_string_pretty(result).ok()?,
        };
        Some(SessionUpdate::AgentMessageChunk(self.answer.chunk(&text)))
    }
}
