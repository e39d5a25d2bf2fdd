//! Notes of the runner in the journal beside the events: which messages of the remote task were recorded.

use a2a::Message;
use antiphon_followed_task::RUNNER_NOTE;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// Messages that are remembered. An agent repeats at most those of its history.
const SAID_MAX: usize = 128;

/// Which messages of the remote task were recorded. Its texts are shortened to digests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Note {
    /// Context of the remote task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) context_id: Option<String>,
    /// Ids of the messages that were recorded, the newest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    said: Vec<String>,
    /// The text that was recorded last.
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<String>,
    /// The question that the status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) question: Option<String>,
}

impl Note {
    /// The note of a task that begins.
    pub(crate) fn of_context(context_id: &str) -> Self {
        Self { context_id: Some(context_id.to_owned()), ..Self::default() }
    }

    /// The note in a status, if it is one.
    pub(crate) fn read(note: Option<&Value>) -> Self {
        note.and_then(|note| Self::deserialize(note).ok()).unwrap_or_default()
    }

    /// The detail of a status with this note.
    pub(crate) fn detail(&self) -> Value {
        json!({ RUNNER_NOTE: self })
    }

    /// Whether a message was recorded.
    pub(crate) fn has(&self, message: &Message) -> bool {
        self.said.contains(&digest(&message.message_id))
    }

    /// Whether this text was the last one.
    pub(crate) fn is_last(&self, text: &str) -> bool {
        self.last.as_ref() == Some(&digest(text))
    }

    /// Notes that a message is recorded with this text.
    pub(crate) fn add(&mut self, message: &Message, text: &str) {
        if self.said.len() == SAID_MAX {
            self.said.remove(0);
        }
        self.said.push(digest(&message.message_id));
        self.last = Some(digest(text));
    }
}

/// The first 16 digits of the SHA-256 of a text.
pub(crate) fn digest(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let first = digest.iter().take(8).fold(0_u64, |first, byte| first << 8 | u64::from(*byte));
    format!("{first:016x}")
}
