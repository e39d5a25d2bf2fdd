//! A task as a transcript: the text of its model goes to one writer, notes about everything else to
//! another. On a terminal a status line at the bottom shows the current activity.
//!
//! Descendants are shown in notes only, never with their text. When deltas of an answer were missed, the
//! rest of the answer is shown once the journal has all of it.

mod answer;
mod options;
mod status_line;

pub use options::{NotePlacement, TranscriptFormat, TranscriptOptions};

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::time::Instant;

use antiphon_core::{
    AgentState, Event, EventBody, InputBlock, Message, OutageWait, Seq, TaskStatus, ToolCallId,
    ToolResultMessage, Usage, UserMessage,
};
use antiphon_runtime::Delta;
use serde::Serialize;

use crate::display::{Destination, TextFilter, escaped};
use crate::note::Note;
use crate::question::todo_text;
use crate::result_text::result_text;
use crate::text::{cut, elapsed, line_count, one_line};
use crate::wording::{diff_lines, dispatch_text, wait_text};
use answer::{Answers, Showing};

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

    /// Whether everything is written as JSON.
    pub fn is_json(&self) -> bool {
        self.options.format == TranscriptFormat::Json
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

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a new event changes only the readers that show it"
    )]
    fn show(&mut self, event: &Event) -> io::Result<()> {
        match &event.body {
            EventBody::StatusChanged(change) => match OutageWait::of(change) {
                Some(wait) => self.model_wait(&wait)?,
                None if change.status == TaskStatus::Running => self.continue_task(),
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
            EventBody::TodoChanged(changed) => {
                if let Some(text) = todo_text(&changed.items) {
                    self.note(&text);
                }
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
        let text = result_text(result);
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
