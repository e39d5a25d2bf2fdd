//! The text that a model reads of an interaction.
//!
//! Each text begins with the sender and the type, in brackets, so that external data never
//! looks like the user's own words. Invisible characters are removed: they could hide
//! instructions from a person.

use super::class::LifecycleIntent;
use super::{Interaction, InteractionContent, Salience, Sender};
use crate::InputBlock;
use crate::hidden_text::visible;

/// The text a model reads.
pub fn render(interaction: &Interaction) -> String {
    let body = body(&interaction.content);
    match (&interaction.from, &interaction.content) {
        (Sender::External(source), InteractionContent::Message { .. }) => {
            external_event_text(source.as_str(), body.as_deref())
        }
        // The JSON payload of an event is metadata and not part of the prompt.
        (Sender::External(source), _) => external_event_text(source.as_str(), None),
        (Sender::User, InteractionContent::Message { .. }) => body.unwrap_or_default(),
        (from @ (Sender::User | Sender::Peer(_)), content) => {
            let label = match content {
                InteractionContent::Message { .. } => format!("MESSAGE from {from}"),
                InteractionContent::Request { intent, .. } => {
                    match LifecycleIntent::parse(intent) {
                        Some(lifecycle) => format!("PEER {from}: {}", lifecycle.as_str()),
                        None => {
                            format!("REQUEST {} from {from}: {}", interaction.id, in_label(intent))
                        }
                    }
                }
                InteractionContent::Response { in_reply_to, status, .. } => {
                    format!("RESPONSE to {in_reply_to} from {from}: {}", status.as_str())
                }
                InteractionContent::Ack { in_reply_to } => {
                    format!("ACK of {in_reply_to} from {from}")
                }
            };
            labeled(format!("[{label}{}]", urgency(interaction)), body.as_deref())
        }
    }
}

/// Text of an external event: its label, and its body when that is not blank.
pub fn external_event_text(source: &str, body: Option<&str>) -> String {
    labeled(format!("[EVENT via {source}]"), body)
}

/// `text` for use in a label: on one line, and without the brackets that end a label.
fn in_label(text: &str) -> String {
    let plain = |c: char| if c.is_whitespace() || "[]".contains(c) { ' ' } else { c };
    visible(text).chars().map(plain).collect()
}

fn labeled(label: String, body: Option<&str>) -> String {
    match body.map(str::trim).filter(|body| !body.is_empty()) {
        Some(body) => format!("{label} {body}"),
        None => label,
    }
}

/// The content as text, without sender and type.
fn body(content: &InteractionContent) -> Option<String> {
    match content {
        InteractionContent::Message { body, blocks } => {
            Some(visible(&message_text(body, blocks.as_deref().unwrap_or_default())))
        }
        InteractionContent::Request { params: value, .. }
        | InteractionContent::Response { result: value, .. } => {
            (!value.is_null()).then(|| visible(&value.to_string()))
        }
        InteractionContent::Ack { .. } => None,
    }
}

/// The text of a message: its body, and the texts of its blocks that do not repeat the body.
pub(super) fn message_text(body: &str, blocks: &[InputBlock]) -> String {
    let text = |block: &'_ InputBlock| match block {
        InputBlock::Text(text) => Some(text.text.clone()),
        InputBlock::Image(_) => None,
    };
    let texts: Vec<String> = blocks.iter().filter_map(text).collect();
    if texts.join("\n").trim() == body.trim() {
        return body.to_owned();
    }
    let repeats = |text: &String| text.trim().is_empty() || text.trim() == body.trim();
    let own = Some(body.to_owned()).filter(|body| !body.trim().is_empty());
    let added = texts.into_iter().filter(|text| !repeats(text));
    own.into_iter().chain(added).collect::<Vec<_>>().join("\n")
}

/// The urgency, when it is above normal.
fn urgency(interaction: &Interaction) -> &'static str {
    match interaction.render_metadata.map(|shown| shown.salience) {
        None | Some(Salience::Background | Salience::Normal) => "",
        Some(Salience::Important) => ", important",
        Some(Salience::Urgent) => ", urgent",
    }
}
