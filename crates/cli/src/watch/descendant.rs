//! One task below the one that is watched, and the lines that are told of it. What agents and models
//! wrote is made visible and cut to a line first.

use std::collections::HashMap;

use antiphon_core::{
    EventBody, InputBlock, Message, StatusChanged, TaskStatus, ToolCallId, visible,
};

use super::note::{Note, Tone};
use crate::screen::{cut, dispatch, lines, title};

/// Characters of an agent's name.
const NAME_CHARS_MAX: usize = 24;

/// Levels by which a line is indented.
const INDENT_MAX: usize = 6;

/// A task below the one that is watched, which has not ended.
pub(super) struct Descendant {
    pub(super) label: String,
    pub(super) depth: usize,
    pub(super) telling: Telling,
    /// Its runner, until its first line is told.
    pub(super) runner: Option<String>,
    /// What it was asked has been told, or was before.
    pub(super) began: bool,
    /// Calls of its last answer, as they are shown.
    calls: HashMap<ToolCallId, String>,
}

/// How much is told of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Telling {
    /// Each step has its line.
    StepByStep,
    /// It is one of many.
    Counted,
}

impl Descendant {
    pub(super) fn new(label: String, depth: usize, telling: Telling) -> Self {
        Self { label, depth, telling, runner: None, began: false, calls: HashMap::new() }
    }

    /// It did something, and did not end.
    pub(super) fn did(&mut self, body: &EventBody) -> Option<Note> {
        match body {
            EventBody::MessageAppended(appended) => match &*appended.message {
                Message::User(user) if !self.began => {
                    self.began = true;
                    let asked = first_line(first_text(&user.content).unwrap_or("(an image)"));
                    let on = self.runner.take().map_or(String::new(), |kind| format!(" on {kind}"));
                    Some(self.note(Tone::Faint, &format!("begins{on}: {asked}")))
                }
                Message::Assistant(answer) => {
                    self.calls =
                        answer.tool_calls().map(|call| (call.id.clone(), title(call))).collect();
                    None
                }
                Message::ToolResult(result) if result.is_error => {
                    let name = cut(&visible(&result.tool_name));
                    let why = first_line(first_text(&result.content).unwrap_or_default());
                    // What is structured is for the model; what it tells of was told already.
                    let why = if why.starts_with(['{', '[']) { "" } else { &why };
                    Some(self.note(Tone::Bad, format!("✗ {name} {why}").trim_end()))
                }
                Message::ToolResult(_) | Message::User(_) => None,
            },
            EventBody::ToolStarted(started) => {
                Some(self.calls(&started.tool_call_id, &started.tool_name))
            }
            EventBody::ToolRequested(requested) => {
                Some(self.calls(&requested.tool_call_id, &requested.tool_name))
            }
            EventBody::Dispatched(dispatched) => {
                dispatch(dispatched).map(|calls| self.note(Tone::Plain, &calls))
            }
            EventBody::HandedOver(over) => {
                let next = name(&over.agent);
                let note = self.note(Tone::Plain, &format!("→ hands over to {next}"));
                self.label = next;
                Some(note)
            }
            EventBody::OutputRejected(rejected) => {
                let why = first_line(&rejected.reason);
                Some(self.note(Tone::Bad, &format!("the result does not fit: {why}")))
            }
            EventBody::TaskCreated(_)
            | EventBody::StatusChanged(_)
            | EventBody::StateChanged(_)
            | EventBody::MessageQueued(_)
            | EventBody::ApprovalRequested(_)
            | EventBody::ApprovalDecided(_)
            | EventBody::ToolRefused(_)
            | EventBody::Awaited(_)
            | EventBody::RequestSent(_)
            | EventBody::Replied(_)
            | EventBody::BudgetRaised(_)
            | EventBody::Relayed(_)
            | EventBody::UsageRecorded(_)
            | EventBody::Compacted(_) => None,
        }
    }

    /// A call begins; only its tool is known when the answer that made it was not seen.
    fn calls(&self, call: &ToolCallId, tool: &str) -> Note {
        let title = self.calls.get(call).cloned().unwrap_or_else(|| cut(&visible(tool)));
        self.note(Tone::Plain, &format!("→ {title}"))
    }

    /// It ended.
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
                    Some(serde_json::Value::String(text)) => format!(", {}", lines(text)),
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

/// A name as it may stand in brackets.
pub(super) fn name(agent: &str) -> String {
    let plain = |c: char| if c.is_whitespace() || "[]".contains(c) { ' ' } else { c };
    visible(agent).chars().map(plain).take(NAME_CHARS_MAX).collect()
}

fn first_text(content: &[InputBlock]) -> Option<&str> {
    content.iter().find_map(|block| match block {
        InputBlock::Text(text) => Some(text.text.as_str()),
        InputBlock::Image(_) => None,
    })
}

fn first_line(text: &str) -> String {
    let text = visible(text);
    cut(text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default())
}
