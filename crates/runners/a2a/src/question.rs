//! The wait of a remote task: a question that a message answers, an approval, or credentials.

use a2a::{Message, Part, PartContent, TaskState, TaskStatus};
use antiphon_core::{PeerWait, StatusChanged, TaskId};
use antiphon_followed_task::RUNNER_NOTE;
use serde_json::{Value, json};

use crate::failure::words;
use crate::note::{Note, digest};
use crate::part_text::of_parts;

/// Answers to an approval of another Antiphon.
const DECISIONS: [&str; 4] = ["allow_once", "allow_task", "allow_always", "deny"];

/// The status here of a remote task that waits.
pub(crate) fn waits(
    peer: &str,
    task_id: &TaskId,
    status: &TaskStatus,
    note: &Note,
) -> StatusChanged {
    let asked = status.message.as_ref().map(|message| words(&of_parts(&message.parts)));
    let asked = asked.unwrap_or_else(|| "it does not say for what".to_owned());
    let reason = match (&status.state, approval(status)) {
        (TaskState::AuthRequired, _) => format!("it needs credentials there: {asked}"),
        (_, Some(_)) => format!(
            "it needs an approval there; a message with {} decides it: {asked}",
            DECISIONS.join(", ")
        ),
        (_, None) => format!("it asks, and a message to this task answers: {asked}"),
    };
    let (peer, task_id) = (peer.to_owned(), task_id.clone());
    let wait = PeerWait { peer, task_id, waiting_for: None, reason: Some(reason) };
    let mut change = wait.status();
    if let Some(Value::Object(detail)) = &mut change.detail {
        detail.insert(RUNNER_NOTE.to_owned(), json!(note));
    }
    change
}

/// What identifies the question.
pub(crate) fn id(status: &TaskStatus) -> String {
    let message = status.message.as_ref().map_or("", |message| &*message.message_id);
    digest(&format!("{:?} {message}", status.state))
}

/// Id of the approval that another Antiphon asks for.
fn approval(status: &TaskStatus) -> Option<&str> {
    let parts = status.message.iter().flat_map(|message: &Message| &message.parts);
    let mut asked = parts.filter_map(|part| match &part.content {
        PartContent::Data(data) => data.get("approval")?.get("id")?.as_str(),
        PartContent::Text(_) | PartContent::Raw(_) | PartContent::Url(_) => None,
    });
    asked.next()
}

/// The decision that a text is, for the approval that the task waits for.
pub(crate) fn decision(status: &TaskStatus, text: &str) -> Option<Part> {
    let (id, word) = (approval(status)?, text.trim());
    let decision = DECISIONS.iter().find(|known| **known == word)?;
    Some(Part::data(json!({ "approval": { "id": id, "decision": decision } })))
}
