//! The lines about an event: one or two in the name of its agent, or none.

use antiphon_core::{
    Event, EventBody, InputBlock, Message, OutageWait, StatusChanged, TaskStatus, ToolResultMessage,
};
use antiphon_view::display::{Destination, escaped};
use antiphon_view::text::{cut, elapsed, one_line};
use antiphon_view::{Tone, diff_lines, outage_wait_text};

use crate::observed::ObservedTree;

/// Characters of an answer or a prompt that are shown.
const TEXT_CHARS_MAX: usize = 240;

/// The lines about an event, in order.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "a new event changes only the readers that show it"
)]
pub(crate) fn event_lines(tree: &ObservedTree, event: &Event) -> Vec<(Tone, String)> {
    match &event.body {
        EventBody::MessageAppended(appended) => match &*appended.message {
            Message::Assistant(_) if appended.superseded => Vec::new(),
            Message::Assistant(answer) => {
                let answer = quoted(&answer.text());
                answer.map(|text| (Tone::Plain, text)).into_iter().collect()
            }
            Message::ToolResult(result) => result_lines(tree, event, result),
            Message::User(_) if appended.queued.is_some() => {
                vec![(Tone::Good, "✓ read your message before its next answer".to_owned())]
            }
            // The tour has shown the prompt of the task at the top.
            Message::User(user) if tree.is_descendant(&event.task_id) => {
                let prompt = quoted(&text_of(&user.content));
                let line = prompt.map(|text| (Tone::Plain, format!("prompt: {text}")));
                line.into_iter().collect()
            }
            Message::User(_) => Vec::new(),
        },
        EventBody::StatusChanged(change) => end_line(change).into_iter().collect(),
        EventBody::HandedOver(over) => {
            vec![(Tone::Plain, format!("hands over to {}", cut(&escaped(&over.agent))))]
        }
        EventBody::OutputRejected(rejected) => {
            let reason = one_line(&rejected.reason);
            vec![(Tone::Bad, format!("✗ its result does not match its schema: {reason}"))]
        }
        _ => Vec::new(),
    }
}

fn quoted(text: &str) -> Option<String> {
    let text = one_line(text);
    let mut chars = text.chars();
    let mut start: String = chars.by_ref().take(TEXT_CHARS_MAX).collect();
    if chars.next().is_some() {
        start.push('…');
    }
    (!start.is_empty()).then(|| format!("“{start}”"))
}

/// A tool call and its result.
fn result_lines(
    tree: &ObservedTree,
    event: &Event,
    result: &ToolResultMessage,
) -> Vec<(Tone, String)> {
    let call = tree.call(&event.task_id, &result.tool_call_id);
    let title =
        call.map_or_else(|| escaped(&result.tool_name).into_owned(), |call| call.title.clone());
    let started = call.and_then(|call| call.started).map(|(at, _)| at);
    let time = started.and_then(|at| (event.at - at).to_std().ok());
    let text = text_of(&result.content);
    if result.is_error {
        return vec![(Tone::Bad, format!("✗ {title}: {}", cut(&reason(&text))))];
    }
    let time = time.map_or(String::new(), |time| {
        if time.as_millis() < 1000 {
            format!(", {} ms", time.as_millis().max(1))
        } else {
            format!(", {}", elapsed(time))
        }
    });
    let mut lines = vec![(Tone::Good, format!("✓ {title}{time}"))];
    let changed = diff_lines(&text).filter(|line| line.starts_with(['+', '-']));
    lines.extend(changed.map(|line| {
        let tone = if line.starts_with('+') { Tone::Good } else { Tone::Bad };
        (tone, format!("  {}", cut(&Destination::Terminal.text(line))))
    }));
    lines
}

fn end_line(change: &StatusChanged) -> Option<(Tone, String)> {
    let detail = change.detail.as_ref();
    match change.status {
        TaskStatus::Completed => Some((Tone::Good, "✓ done".to_owned())),
        TaskStatus::Failed => {
            let error = detail.and_then(|detail| detail["error"].as_str()).unwrap_or("failed");
            Some((Tone::Bad, format!("✗ {}", cut(&one_line(error)))))
        }
        TaskStatus::Canceled => Some((Tone::Bad, "✗ canceled".to_owned())),
        TaskStatus::Running => {
            let wait = OutageWait::of(change)?;
            Some((Tone::Bad, outage_wait_text(&wait)))
        }
        TaskStatus::Pending | TaskStatus::InputRequired => None,
    }
}

/// Why a call failed: the exit code of a command, or else the first line of the output.
fn reason(text: &str) -> String {
    let exit = text.lines().rev().find(|line| line.starts_with("[exit code"));
    let first = || text.lines().find(|line| !line.trim().is_empty());
    one_line(exit.or_else(first).unwrap_or("failed")).trim_matches(['[', ']']).to_owned()
}

/// The text of a message, with a placeholder for each image.
pub(crate) fn text_of(content: &[InputBlock]) -> String {
    let text = content.iter().map(|block| match block {
        InputBlock::Text(text) => text.text.as_str(),
        InputBlock::Image(_) => "[an image]\n",
    });
    text.collect()
}
