//! A task as a transcript: the text of its model goes to one writer, notes about everything else to
//! another. On a terminal a status line at the bottom shows the current activity.
//!
//! Descendants are shown in notes only, never with their text. When deltas of an answer were missed, the
//! rest of the answer is shown once the journal has all of it.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::time::Instant;

use antiphon_core::{
    AgentState, AssistantMessage, EVENT_VERSION, Event, EventBody, InputBlock, Message, OutageWait,
    PriceTable, Seq, StreamEvent, TaskId, TaskStatus, TokenUsage, ToolCallId, ToolResultMessage,
    Usage, UsageRecorded, UserMessage,
};
use antiphon_runtime::{Delta, DeltaEvent, ToolDelta};
use serde::Serialize;

use crate::colors::Colors;
use crate::display::{Destination, TextFilter, escaped};
use crate::note::Note;
use crate::text::{cut, elapsed, line_count, one_line};
use crate::wording::{diff_lines, dispatch_text, outage_wait_text, tool_call_title, wait_text};

/// How a task is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TranscriptFormat {
    /// Its text as it arrives.
    Text,
    /// Its text among the notes; the caller prints the result.
    Result,
    /// Every event and delta, one JSON object per line.
    Json,
}

/// Where notes appear in relation to the answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotePlacement {
    /// On the same screen: a note starts on a line of its own.
    Inline,
    /// Elsewhere, so a note does not end the line of an answer.
    Separate,
}

/// How a transcript is written.
pub struct TranscriptOptions {
    /// How the task is shown.
    pub format: TranscriptFormat,
    /// Gets the answers, or the lines of JSON. Errors of it are returned.
    pub answers: Box<dyn Write + Send>,
    /// Gets notes and the status line. Errors of it are ignored: the reader may be gone.
    pub notes: Box<dyn Write + Send>,
    /// Where notes appear in relation to the answers.
    pub note_placement: NotePlacement,
    /// Where the answers are written to.
    pub destination: Destination,
    /// Whether the status line is drawn.
    pub status_line: bool,
    /// Whether notes are colored.
    pub colors: Colors,
    /// Prices of models, for the status line.
    pub prices: PriceTable,
}

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// Line behind a part of an answer that was superseded.
const SUPERSEDED: &str = "[The answer broke off here. It begins again.]\n";

/// Deltas of the next answer that are kept until the journal has been read up to its beginning. One more
/// drops all of them, and the answer is shown when it is complete.
const EARLY_MAX: usize = 4096;

/// When the answers of the model are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answers {
    AsTheyArrive,
    /// When they are complete, because deltas were missed.
    WhenComplete,
    /// The current one when it is complete, because its beginning was missed; later ones as they arrive.
    ThisWhenComplete,
}

/// Which answer is being shown. Deltas arrive before the journal is read: those of an answer whose
/// beginning has not been read wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Showing {
    /// None: the last one is complete.
    None,
    /// The one whose deltas arrive next.
    Next,
    /// The one behind this many complete answers.
    Turn(u32),
}

impl Showing {
    /// Whether a delta of that answer is shown now.
    fn accepts(&mut self, turn: u32) -> bool {
        match *self {
            Self::None => false,
            Self::Next => {
                *self = Self::Turn(turn);
                true
            }
            Self::Turn(shown) => turn <= shown,
        }
    }
}

/// The transcript of one task.
pub struct Transcript {
    options: TranscriptOptions,
    /// Text of the current answer on its way to the reader.
    filter: TextFilter,
    /// The status line is on the screen.
    status_drawn: bool,
    /// The last thing written was text of an answer without a line break behind it.
    in_text: bool,
    began: Instant,
    ticks: usize,
    activity: String,
    /// Replaces the activity while the task waits for its children.
    waiting: Option<String>,
    /// Bytes of the current answer that have been shown.
    shown_bytes: usize,
    showing: Showing,
    /// The last event of the task that was shown.
    seq: Seq,
    /// The last one that superseded an answer.
    superseded_at: Seq,
    early: Vec<Delta>,
    answers: Answers,
    /// Calls of the last answer: their titles, and when they started.
    calls: HashMap<ToolCallId, (String, Option<Instant>)>,
    spent: BTreeMap<String, Usage>,
}

impl Transcript {
    /// An empty transcript. Its clock starts now.
    pub fn new(options: TranscriptOptions) -> Self {
        Self {
            filter: TextFilter::new(options.destination),
            options,
            status_drawn: false,
            in_text: false,
            began: Instant::now(),
            ticks: 0,
            activity: "starting".to_owned(),
            waiting: None,
            shown_bytes: 0,
            showing: Showing::None,
            seq: Seq(0),
            superseded_at: Seq(0),
            early: Vec::new(),
            answers: Answers::AsTheyArrive,
            calls: HashMap::new(),
            spent: BTreeMap::new(),
        }
    }

    /// Whether [`tick`](Self::tick) draws a status line.
    pub fn has_status_line(&self) -> bool {
        self.options.status_line
    }

    /// Whether everything is written as JSON.
    pub fn is_json(&self) -> bool {
        self.options.format == TranscriptFormat::Json
    }

    /// Sets what the status line says while the task waits for its children.
    pub fn set_waiting(&mut self, waiting: Option<String>) {
        self.waiting = waiting;
    }

    /// Adds the usage of a model call to the status line.
    pub fn add_usage(&mut self, recorded: &UsageRecorded) {
        *self.spent.entry(recorded.summed_under()).or_default() += recorded.usage;
    }

    /// Draws the status line in at most `width` characters, unless the model is writing there.
    pub fn tick(&mut self, width: usize) {
        if !self.options.status_line || self.in_text {
            return;
        }
        self.ticks += 1;
        let spinner = SPINNER[self.ticks % SPINNER.len()];
        let activity = self.waiting.as_ref().unwrap_or(&self.activity);
        let line = format!("{spinner} {activity} {}", self.spent_text());
        let line: String = line.chars().take(width).collect();
        let line = self.options.colors.dim(&line);
        self.write_note(&format!("\r\x1b[2K{line}"));
        self.status_drawn = true;
    }

    /// `3.2 s · 1204 tokens · $0.0123`.
    fn spent_text(&self) -> String {
        let mut total = Usage::default();
        for usage in self.spent.values() {
            total += *usage;
        }
        let tokens = TokenUsage::from(total).total_tokens;
        let mut text = elapsed(self.began.elapsed());
        if tokens > 0 {
            text.extend([" · ", &tokens.to_string(), " tokens"]);
        }
        if let Ok(cost) = antiphon_runtime::cost(&self.spent, &self.options.prices)
            && cost.nano_usd > 0
        {
            text.extend([" · ", &cost.to_string()]);
        }
        text
    }

    /// Shows a delta of the task.
    pub fn delta(&mut self, delta: &Delta) -> io::Result<()> {
        if self.is_json() {
            return self.json_line(delta);
        }
        if matches!(&delta.event, DeltaEvent::Answer(_)) {
            if delta.after < self.superseded_at {
                return Ok(());
            }
            // After a resume, the events before are not shown.
            let is_early = self.seq > Seq(0) && delta.after > self.seq;
            if is_early || !self.showing.accepts(delta.turn) {
                return self.keep_early(delta);
            }
        }
        match &delta.event {
            DeltaEvent::Answer(StreamEvent::TextDelta { .. })
                if self.answers != Answers::AsTheyArrive =>
            {
                Ok(())
            }
            DeltaEvent::Answer(StreamEvent::TextDelta { delta: text }) => {
                if delta.text_at > self.shown_bytes {
                    self.answers = Answers::ThisWhenComplete;
                    return Ok(());
                }
                if delta.text_at < self.shown_bytes {
                    // It was shown before the stream was opened again.
                    return Ok(());
                }
                self.shown_bytes = self.shown_bytes.saturating_add(text.len());
                self.write_answer(text)
            }
            DeltaEvent::Answer(StreamEvent::ThinkingDelta { .. }) => {
                "thinking".clone_into(&mut self.activity);
                Ok(())
            }
            DeltaEvent::Answer(StreamEvent::ToolCallBegin { name, .. }) => {
                self.activity = format!("writing a call of {}", escaped(name));
                Ok(())
            }
            // The journal says the same of a superseded answer.
            DeltaEvent::State(_)
            | DeltaEvent::Answer(
                StreamEvent::ToolCallDelta { .. } | StreamEvent::ToolCallEnd { .. },
            ) => Ok(()),
            DeltaEvent::Tool(ToolDelta::ToolOutput { tool_call_id, delta }) => {
                if let Some(last) = delta.lines().rev().find(|line| !line.trim().is_empty()) {
                    let name = self.calls.get(tool_call_id).map_or("", |(title, _)| title);
                    self.activity = cut(&format!("{name} │ {}", one_line(last)));
                }
                Ok(())
            }
        }
    }

    fn keep_early(&mut self, delta: &Delta) -> io::Result<()> {
        if self.early.len() < EARLY_MAX {
            self.early.push(delta.clone());
            return Ok(());
        }
        self.early.clear();
        self.missed(&delta.task_id, EARLY_MAX as u64)
    }

    /// Notes that this many deltas were missed: the answer is shown when it is complete.
    pub fn missed(&mut self, task_id: &TaskId, count: u64) -> io::Result<()> {
        match self.options.format {
            TranscriptFormat::Json => self.json_line(&serde_json::json!({
                "v": EVENT_VERSION, "task_id": task_id, "type": "deltas_missed",
                "data": { "count": count },
            })),
            TranscriptFormat::Text | TranscriptFormat::Result => {
                self.answers = Answers::WhenComplete;
                Ok(())
            }
        }
    }

    /// The next answer begins, and everything before it has been shown.
    fn begin_answer(&mut self) -> io::Result<()> {
        if self.shown_bytes > 0 {
            // The process that received it has ended before it was complete.
            self.supersede()?;
        }
        self.showing = Showing::Next;
        self.filter = TextFilter::new(self.options.destination);
        for early in std::mem::take(&mut self.early) {
            self.delta(&early)?;
        }
        Ok(())
    }

    /// An answer is complete: shows the rest of it.
    fn complete_answer(&mut self, answer: &AssistantMessage) -> io::Result<()> {
        self.calls =
            answer.tool_calls().map(|c| (c.id.clone(), (tool_call_title(c), None))).collect();
        self.showing = Showing::None;
        let shown_bytes = std::mem::take(&mut self.shown_bytes);
        let text = answer.text();
        let rest = text.get(shown_bytes..).unwrap_or(&text);
        // Also when the stream was opened after its last delta.
        if self.answers != Answers::AsTheyArrive || !rest.is_empty() {
            self.write_answer(rest)?;
            self.end_line();
        }
        if self.answers == Answers::ThisWhenComplete {
            self.answers = Answers::AsTheyArrive;
        }
        Ok(())
    }

    /// What was shown of the answer does not count: it begins again.
    fn supersede(&mut self) -> io::Result<()> {
        let shown = std::mem::take(&mut self.shown_bytes) > 0;
        if shown && self.options.format == TranscriptFormat::Text {
            self.end_line();
            self.write_answer(SUPERSEDED)?;
        }
        if self.answers == Answers::ThisWhenComplete {
            self.answers = Answers::AsTheyArrive;
        }
        self.filter = TextFilter::new(self.options.destination);
        Ok(())
    }

    /// Shows an event of the task.
    pub fn event(&mut self, event: &Event) -> io::Result<()> {
        if self.is_json() {
            return self.json_line(event);
        }
        self.seq = event.seq;
        self.show(event)?;
        for early in std::mem::take(&mut self.early) {
            self.delta(&early)?;
        }
        Ok(())
    }

    /// The model does not answer: the task waits. What was shown of the answer is superseded.
    fn model_wait(&mut self, wait: &OutageWait) -> io::Result<()> {
        if wait.superseded {
            self.superseded_at = self.seq;
            self.supersede()?;
            self.showing = Showing::Next;
        }
        let text = outage_wait_text(wait);
        self.note(&text);
        self.activity = text;
        Ok(())
    }

    /// The task continues. A task that waited for its model goes on with the answer.
    fn goes_on(&mut self) {
        "running".clone_into(&mut self.activity);
        if self.showing == Showing::None {
            self.showing = Showing::Next;
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a new event changes only the readers that show it"
    )]
    fn show(&mut self, event: &Event) -> io::Result<()> {
        match &event.body {
            EventBody::StatusChanged(change) => match OutageWait::of(change) {
                Some(wait) => self.model_wait(&wait)?,
                None if change.status == TaskStatus::Running => self.goes_on(),
                None => {
                    if let Some(text) = wait_text(change) {
                        self.note(&text);
                    }
                }
            },
            EventBody::UsageRecorded(recorded) => {
                self.add_usage(recorded);
                // A step is complete: what follows starts on a line of its own.
                self.end_line();
            }
            EventBody::StateChanged(change) => {
                self.activity = change.to.to_string();
                if change.to == AgentState::Thinking {
                    self.begin_answer()?;
                }
            }
            EventBody::MessageAppended(appended) => match &*appended.message {
                // The status behind it says so.
                Message::Assistant(_) if appended.superseded => {}
                Message::Assistant(answer) => self.complete_answer(answer)?,
                Message::ToolResult(result) => self.tool_result(result),
                Message::User(user) if appended.queued.is_some() => {
                    let text = queued_message_text(user);
                    self.note(&text);
                }
                Message::User(_) => {}
            },
            EventBody::ToolStarted(started) => {
                self.tool_started(&started.tool_call_id, &started.tool_name);
            }
            EventBody::ToolRequested(requested) => {
                self.tool_started(&requested.tool_call_id, &requested.tool_name);
            }
            EventBody::Dispatched(dispatched) => {
                if let Some(text) = dispatch_text(dispatched) {
                    self.note(&text);
                }
            }
            EventBody::HandedOver(over) => {
                self.note(&format!("→ hands over to {}", cut(&escaped(&over.agent))));
            }
            EventBody::Compacted(_) => self.note("the conversation was compacted"),
            EventBody::OutputRejected(rejected) => {
                let reason = cut(&one_line(&rejected.reason));
                self.note(&format!("the result does not match its schema: {reason}"));
            }
            _ => {}
        }
        Ok(())
    }

    /// A call starts. Only the name of its tool is known when the answer was not seen.
    fn tool_started(&mut self, call: &ToolCallId, tool: &str) {
        let unknown = || (cut(&escaped(tool)), None);
        let (title, at) = self.calls.entry(call.clone()).or_insert_with(unknown);
        *at = Some(Instant::now());
        self.activity.clone_from(title);
        let text = format!("→ {title}");
        self.note(&text);
    }

    fn tool_result(&mut self, result: &ToolResultMessage) {
        let (title, started) = self
            .calls
            .get(&result.tool_call_id)
            .cloned()
            .unwrap_or_else(|| (cut(&escaped(&result.tool_name)), None));
        let took = started.map_or(String::new(), |at| format!(" {}", elapsed(at.elapsed())));
        let text: String = result
            .content
            .iter()
            .map(|block| match block {
                InputBlock::Text(text) => text.text.as_str(),
                InputBlock::Image(_) => "[an image]\n",
            })
            .collect();
        let name = title.split_whitespace().next().unwrap_or_default().to_owned();
        if result.is_error {
            let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
            let line = format!("✗ {name}{took} {}", cut(&one_line(first)));
            self.styled_note(&self.options.colors.red(&line));
        } else {
            let line = format!("✓ {name}{took}, {}", line_count(&text));
            self.styled_note(&self.options.colors.green(&line));
        }
        for line in diff_lines(&text) {
            let line = Destination::Terminal.text(line);
            self.styled_note(&self.options.colors.diff_line(&line));
        }
    }

    /// Writes a note about a descendant on a line of its own.
    pub fn note_about_descendant(&mut self, note: &Note) {
        let line = self.options.colors.toned(note.tone, &escaped(&note.text));
        self.styled_note(&line);
    }

    /// Writes a note on lines of its own.
    pub fn note(&mut self, text: &str) {
        self.styled_note(&Destination::Terminal.text(text));
    }

    /// Writes a note with colors. The caller has escaped everything else in it.
    pub fn styled_note(&mut self, text: &str) {
        if self.options.note_placement == NotePlacement::Inline {
            self.end_line();
        }
        self.clear_status();
        self.write_note(&format!("{text}\n"));
    }

    /// Erases the status line.
    pub fn clear_status(&mut self) {
        if std::mem::take(&mut self.status_drawn) {
            self.write_note("\r\x1b[2K");
        }
    }

    /// Ends the line of the current answer, if it has no line break yet.
    pub fn end_line(&mut self) {
        if std::mem::take(&mut self.in_text) {
            // The next write reports a reader that is gone.
            let _ = self.options.answers.write_all(b"\n");
        }
    }

    fn write_answer(&mut self, text: &str) -> io::Result<()> {
        self.clear_status();
        self.in_text = !text.ends_with('\n');
        // Text of a model must not control the terminal.
        let text = self.filter.text(text);
        self.options.answers.write_all(text.as_bytes())?;
        self.options.answers.flush()
    }

    fn write_note(&mut self, text: &str) {
        let _ = self.options.notes.write_all(text.as_bytes());
    }

    /// Writes one JSON object on a line.
    fn json_line(&mut self, value: &impl Serialize) -> io::Result<()> {
        let line = serde_json::to_string(value).map_err(io::Error::other)?;
        let mut line = self.options.destination.json(&line).into_owned();
        line.push('\n');
        self.options.answers.write_all(line.as_bytes())
    }
}

/// The note about a queued message the model has read: of the user, or the report of an agent.
fn queued_message_text(user: &UserMessage) -> String {
    let text = match user.content.first() {
        Some(InputBlock::Text(text)) => text.text.as_str(),
        Some(InputBlock::Image(_)) | None => "",
    };
    let report = text.strip_prefix("[RESPONSE to ").and_then(|rest| rest.split_once(" from "));
    let report = report.and_then(|(_, rest)| rest.split_once(']'));
    match report {
        Some((agent, _)) => format!("the agent read the report of {}", cut(&escaped(agent))),
        None => "the agent read your message".to_owned(),
    }
}

#[cfg(test)]
mod tests;
