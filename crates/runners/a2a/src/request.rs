//! The message that the remote agent gets for a task.

use std::num::NonZeroUsize;
use std::sync::Arc;

use a2a::{Message, Part, Role, SendMessageRequest};
use antiphon_core::port::{JournalError, Read, RunnerError, TaskJournal};
use antiphon_core::{EventBody, InputBlock, Message as OwnMessage, Position, TaskId, UserMessage};
use antiphon_followed_task::{LocalTask, RUNNER_NOTE};

use crate::note::Note;

/// Bytes of the conversation before the message that are sent, at most: the newest.
const BEFORE_BYTES_MAX: usize = 64 * 1024;

/// Events read at a time.
const PAGE: NonZeroUsize = NonZeroUsize::new(256).unwrap();

/// Pages of the task before that are searched for its context, at most.
const PAGES_MAX: usize = 64;

/// The message for a task. The next task of a session continues the context of the last one; without one, the messages
/// before are sent as text.
pub(crate) async fn of_task(
    local: &LocalTask,
    journal: &dyn TaskJournal,
    peer: &str,
) -> Result<SendMessageRequest, RunnerError> {
    let messages = local.history(journal).await?;
    let Some((OwnMessage::User(message), before)) =
        messages.split_last().map(|(last, before)| (&**last, before))
    else {
        let reason = "the last message is not the user's: there is no question to send".to_owned();
        return Err(RunnerError::Refused { reason });
    };
    let context_id = context_before(local, journal, peer).await?;
    let mut parts = Vec::new();
    if context_id.is_none() && !before.is_empty() {
        parts.push(Part::text(format!("The conversation until now:\n{}", transcript(before))));
    }
    parts.extend(parts_of(message));
    if let Some(schema) = &local.created.output_schema {
        let schema = schema.as_str();
        parts.push(Part::text(format!("Answer with JSON alone that fits this schema: {schema}")));
    }
    Ok(request(local.task_id.as_str(), None, context_id, parts))
}

/// A message with an id.
pub(crate) fn request(
    message_id: &str,
    task_id: Option<&TaskId>,
    context_id: Option<String>,
    parts: Vec<Part>,
) -> SendMessageRequest {
    let message = Message {
        message_id: message_id.to_owned(),
        context_id,
        task_id: task_id.map(ToString::to_string),
        role: Role::User,
        parts,
        metadata: None,
        extensions: None,
        reference_task_ids: None,
    };
    SendMessageRequest { message, configuration: None, metadata: None, tenant: None }
}

/// The parts of a message of ours.
pub(crate) fn parts_of(message: &UserMessage) -> Vec<Part> {
    let part = |block: &InputBlock| match block {
        InputBlock::Text(text) => Part::text(text.text.clone()),
        InputBlock::Image(image) => {
            Part::raw(image.data().to_vec()).with_media_type(image.mime_type())
        }
    };
    message.content.iter().map(part).collect()
}

/// Messages as text, the newest of them.
fn transcript(messages: &[Arc<OwnMessage>]) -> String {
    let lines: Vec<String> = messages.iter().filter_map(|message| line(message)).collect();
    let mut bytes = 0;
    let fits = |line: &&String| {
        bytes += line.len() + 1;
        bytes <= BEFORE_BYTES_MAX
    };
    let mut newest: Vec<&String> = lines.iter().rev().take_while(fits).collect();
    newest.reverse();
    newest.into_iter().map(String::as_str).collect::<Vec<_>>().join("\n")
}

fn line(message: &OwnMessage) -> Option<String> {
    let (who, text) = match message {
        OwnMessage::User(user) => {
            let texts = user.content.iter().filter_map(|block| match block {
                InputBlock::Text(text) => Some(text.text.as_str()),
                InputBlock::Image(_) => None,
            });
            ("User", texts.collect::<Vec<_>>().join("\n"))
        }
        OwnMessage::Assistant(answer) => ("Assistant", answer.text()),
        OwnMessage::ToolResult(_) => return None,
    };
    (!text.is_empty()).then(|| format!("{who}: {text}"))
}

/// The context of the task before this one, if the same remote agent ran it.
async fn context_before(
    local: &LocalTask,
    journal: &dyn TaskJournal,
    peer: &str,
) -> Result<Option<String>, JournalError> {
    let Some(before) = &local.created.history else { return Ok(None) };
    let (mut after, mut context, mut same) = (Position(0), None, false);
    for _ in 0..PAGES_MAX {
        let read = Read { task_id: Some(before.task_id.clone()), after, limit: PAGE };
        let page = journal.read(read).await?;
        if page.events.is_empty() {
            break;
        }
        after = page.next;
        for event in page.events {
            if let EventBody::TaskCreated(created) = event.body {
                same = created.runner.is_some_and(|runner| {
                    runner.kind == crate::A2A_RUNNER && runner.peer() == Some(peer)
                });
            } else if let EventBody::StatusChanged(change) = event.body {
                let note = change.detail.as_ref().and_then(|detail| detail.get(RUNNER_NOTE));
                context = Note::read(note).context_id.or(context);
            }
        }
    }
    Ok(context.filter(|_| same))
}
