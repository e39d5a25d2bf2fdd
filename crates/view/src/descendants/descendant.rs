//! One descendant of the watched task, and the notes about it. Text of agents and models is escaped and cut
//! to one line first.

use std::collections::HashMap;

use antiphon_core::{EventBody, InputBlock, Message, StatusChanged, TaskStatus, ToolCallId};

use crate::display::escaped;
use crate::note::{Note, Tone};
use crate::text::{cut, line_count, one_line};
use crate::wording::{dispatch_text, tool_call_title, wait_text};

/// Characters of an agent's name in notes.
const NAME_CHARS_MAX: usize = 24;

/// Levels by which a note is indented at most.
const INDENT_MAX: usize = 6;

/// A descendant that has not ended.
#[derive(Debug)]
pub(super) struct Descendant {
    pub(super) label: String,
    pub(super) depth: usize,
    pub(super) reporting: Reporting,
    /// Kind of its runner, until the first note.
    pub(super) runner: Option<String>,
    /// Its prompt has been shown, or was sent before watching began.
    pub(super) began: bool,
    /// Titles of the tool calls of its last answer.
    call_titles: HashMap<ToolCallId, String>,
}

/// Which notes a descendant gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reporting {
    /// One for each step.
    EachStep,
    /// None of its own, unless it fails.
    Counted,
}

impl Descendant {
    pub(super) fn new(label: String, depth: usize, reporting: Reporting) -> Self {
        let call_titles = HashMap::new();
        Self { label, depth, reporting, runner: None, began: false, call_titles }
    }

    /// Applies an event that does not end the task.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a new event changes only the readers that show it"
    )]
    pub(super) fn apply(&mut self, body: &EventBody) -> Option<Note> {
        match body {
            EventBody::MessageAppended(appended) => match &*appended.message {
                Message::User(user) if !self.began => {
                    self.began = true;
                    let prompt = first_line(first_text(&user.content).unwrap_or("(an image)"));
                    let on = self.runner.take().map_or(String::new(), |kind| format!(" on {kind}"));
                    Some(self.note(Tone::Faint, &format!("begins{on}: {prompt}")))
                }
                Message::Assistant(_) if appended.superseded => None,
                Message::Assistant(answer) => {
                    let calls = answer.tool_calls();
                    self.call_titles =
                        calls.map(|call| (call.id.clone(), tool_call_title(call))).collect();
                    None
                }
                Message::ToolResult(result) if result.is_error => {
                    let name = cut(&escaped(&result.tool_name));
                    let reason = first_line(first_text(&result.content).unwrap_or_default());
                    // Structured output is for the model; other notes say the same.
                    let reason = if reason.starts_with(['{', '[']) { "" } else { &reason };
                    Some(self.note(Tone::Bad, format!("✗ {name} {reason}").trim_end()))
                }
                Message::ToolResult(_) | Message::User(_) => None,
            },
            EventBody::ToolStarted(started) => {
                Some(self.call_note(&started.tool_call_id, &started.tool_name))
            }
            EventBody::ToolRequested(requested) => {
                Some(self.call_note(&requested.tool_call_id, &requested.tool_name))
            }
            EventBody::Dispatched(dispatched) => {
                dispatch_text(dispatched).map(|text| self.note(Tone::Plain, &text))
            }
            EventBody::HandedOver(over) => {
                let next = name(&over.agent);
                let note = self.note(Tone::Plain, &format!("→ hands over to {next}"));
                self.label = next;
                Some(note)
            }
            EventBody::OutputRejected(rejected) => {
                let reason = first_line(&rejected.reason);
                Some(
                    self.note(
                        Tone::Bad,
                        &format!("the result does not match its schema: {reason}"),
                    ),
                )
            }
            EventBody::StatusChanged(change) => {
                let text = wait_text(change)?;
                Some(self.note(Tone::Faint, &text))
            }
            _ => None,
        }
    }

    /// A call starts. Only the name of its tool is known when the answer was not seen.
    fn call_note(&self, call: &ToolCallId, tool: &str) -> Note {
        let title = self.call_titles.get(call).cloned().unwrap_or_else(|| cut(&escaped(tool)));
        self.note(Tone::Plain, &format!("→ {title}"))
    }

    /// The note about its end.
    pub(super) fn end(&self, change: &StatusChanged) -> Note {
        let detail = change.detail.as_ref();
        match change.status {
            TaskStatus::Failed => {
                let error = detail.and_then(|detail| detail["error"].as_str());
                let error = first_line(error.unwrap_or("no reason given"));
                self.note(Tone::Bad, &format!("failed: {error}"))
            }
            TaskStatus::Canceled => self.note(Tone::Faint, "canceled"),
            TaskStatus::Completed
            | TaskStatus::Pending
            | TaskStatus::Running
            | TaskStatus::InputRequired => {
                let size = match detail {
                    None | Some(serde_json::Value::Null) => String::new(),
                    Some(serde_json::Value::String(text)) => format!(", {}", line_count(text)),
                    Some(_) => ", structured".to_owned(),
                };
                self.note(Tone::Good, &format!("✓ done{size}"))
            }
        }
    }

    fn note(&self, tone: Tone, text: &str) -> Note {
        let indent = "  ".repeat(self.depth.min(INDENT_MAX));
        Note { text: format!("{indent}[{}] {text}", self.label), tone }
    }
}

/// The name of an agent, safe inside brackets.
pub(super) fn name(agent: &str) -> String {
    let plain = |c: char| if c.is_whitespace() || "[]".contains(c) { ' ' } else { c };
    escaped(agent).chars().map(plain).take(NAME_CHARS_MAX).collect()
}

fn first_text(content: &[InputBlock]) -> Option<&str> {
    content.iter().find_map(|block| match block {
        InputBlock::Text(text) => Some(text.text.as_str()),
        InputBlock::Image(_) => None,
    })
}

fn first_line(text: &str) -> String {
    cut(&one_line(text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default()))
}
