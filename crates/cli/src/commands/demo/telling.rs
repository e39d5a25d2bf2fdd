//! What is told of an event: a line or two in the name of its agent, or nothing.

use antiphon_core::{
    Event, EventBody, InputBlock, Message, StatusChanged, TaskStatus, ToolResultMessage, visible,
};

use super::stage::Stage;
use crate::screen::{cut, diff, elapsed};
use crate::watch::Tone;

/// Characters of what an agent says that are told.
const SAID_CHARS_MAX: usize = 240;

/// What is told of an event, in order.
pub(super) fn told(stage: &Stage, event: &Event) -> Vec<(Tone, String)> {
    match &event.body {
        EventBody::MessageAppended(appended) => match &*appended.message {
            Message::Assistant(answer) => said(&answer.text()).into_iter().collect(),
            Message::ToolResult(result) => called(stage, event, result),
            Message::User(_) if appended.queued.is_some() => {
                vec![(Tone::Good, "✓ heard it, before its next answer".to_owned())]
            }
            // What the task at the top was asked is known.
            Message::User(user) if stage.is_below(&event.task_id) => {
                let asked = said(&text_of(&user.content));
                asked
                    .map(|(_, text)| (Tone::Plain, format!("is asked: {text}")))
                    .into_iter()
                    .collect()
            }
            Message::User(_) => Vec::new(),
        },
        EventBody::StatusChanged(change) => ended(change).into_iter().collect(),
        EventBody::HandedOver(over) => {
            vec![(Tone::Plain, format!("hands over to {}", cut(&visible(&over.agent))))]
        }
        EventBody::OutputRejected(rejected) => {
            vec![(Tone::Bad, format!("✗ its result does not fit: {}", one_line(&rejected.reason)))]
        }
        EventBody::TaskCreated(_)
        | EventBody::StateChanged(_)
        | EventBody::MessageQueued(_)
        | EventBody::RequestSent(_)
        | EventBody::Replied(_)
        | EventBody::ApprovalRequested(_)
        | EventBody::ApprovalDecided(_)
        | EventBody::ToolRefused(_)
        | EventBody::ToolStarted(_)
        | EventBody::ToolRequested(_)
        | EventBody::Dispatched(_)
        | EventBody::Awaited(_)
        | EventBody::Relayed(_)
        | EventBody::UsageRecorded(_)
        | EventBody::BudgetRaised(_)
        | EventBody::Compacted(_) => Vec::new(),
    }
}

fn said(text: &str) -> Option<(Tone, String)> {
    let text = one_line(text);
    let mut chars = text.chars();
    let mut told: String = chars.by_ref().take(SAID_CHARS_MAX).collect();
    if chars.next().is_some() {
        told.push('…');
    }
    (!told.is_empty()).then(|| (Tone::Plain, format!("“{told}”")))
}

/// A call and what came of it.
fn called(stage: &Stage, event: &Event, result: &ToolResultMessage) -> Vec<(Tone, String)> {
    let call = stage.call(&event.task_id, &result.tool_call_id);
    let title = call.map_or_else(|| visible(&result.tool_name), |call| call.title.clone());
    let started = call.and_then(|call| call.started).map(|(at, _)| at);
    let took = started.and_then(|at| (event.at - at).to_std().ok());
    let text = text_of(&result.content);
    if result.is_error {
        return vec![(Tone::Bad, format!("✗ {title}: {}", cut(&reason(&text))))];
    }
    let took = took.map_or(String::new(), |took| {
        if took.as_millis() < 1000 {
            format!(", {} ms", took.as_millis().max(1))
        } else {
            format!(", {}", elapsed(took))
        }
    });
    let mut lines = vec![(Tone::Good, format!("✓ {title}{took}"))];
    let changed = diff(&text).filter(|line| line.starts_with(['+', '-']));
    lines.extend(changed.map(|line| {
        let tone = if line.starts_with('+') { Tone::Good } else { Tone::Bad };
        (tone, format!("  {}", cut(&visible(line))))
    }));
    lines
}

fn ended(change: &StatusChanged) -> Option<(Tone, String)> {
    let detail = change.detail.as_ref();
    match change.status {
        TaskStatus::Completed => Some((Tone::Good, "✓ done".to_owned())),
        TaskStatus::Failed => {
            let error = detail.and_then(|detail| detail["error"].as_str()).unwrap_or("failed");
            Some((Tone::Bad, format!("✗ {}", cut(&one_line(error)))))
        }
        TaskStatus::Canceled => Some((Tone::Bad, "✗ canceled".to_owned())),
        TaskStatus::Pending | TaskStatus::Running | TaskStatus::InputRequired => None,
    }
}

/// What a failed call says: how a command ended, or else the first that it says.
fn reason(text: &str) -> String {
    let ended = text.lines().rev().find(|line| line.starts_with("[exit code"));
    let first = || text.lines().find(|line| !line.trim().is_empty());
    one_line(ended.or_else(first).unwrap_or("it failed")).trim_matches(['[', ']']).to_owned()
}

pub(super) fn text_of(content: &[InputBlock]) -> String {
    let text = content.iter().map(|block| match block {
        InputBlock::Text(text) => text.text.as_str(),
        InputBlock::Image(_) => "[an image]\n",
    });
    text.collect()
}

/// A text that drives no terminal, on one line.
pub(super) fn one_line(text: &str) -> String {
    visible(text).split_whitespace().collect::<Vec<_>>().join(" ")
}
