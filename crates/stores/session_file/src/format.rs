//! The text of a session file.
//!
//! ```json
//! {"version":1,"id":"…","system_prompt":"…","created_at":"…","updated_at":"…","messages":[…]}
//! ```
//!
//! The wire types are private. The JSON of a message is the domain's own.

use std::sync::Arc;

use antiphon_core::{Message, Session, SessionId};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The version written, and the only one read.
pub const VERSION: u64 = 1;

/// Why a text is no session file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// There is nothing in it.
    #[error("the file is empty")]
    Empty,
    /// Not JSON, or not of the right shape.
    #[error("not a session file: {reason}")]
    Malformed {
        /// What and where.
        reason: String,
    },
    /// Of another version.
    #[error("session file version {found} is not supported, only {VERSION}")]
    Version {
        /// Its version, as it is written there.
        found: String,
    },
    /// One of its messages is wrong.
    #[error("messages[{index}]: {reason}")]
    Message {
        /// Which, counted from 0.
        index: usize,
        /// What is wrong.
        reason: String,
    },
}

#[derive(Deserialize)]
struct VersionOnly<'a> {
    #[serde(borrow)]
    version: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct EnvelopeIn<'a> {
    id: SessionId,
    #[serde(default)]
    system_prompt: String,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
    /// `null` is what some writers make of an empty list.
    #[serde(borrow)]
    messages: Option<Vec<&'a RawValue>>,
}

#[derive(Serialize)]
struct EnvelopeOut<'a> {
    version: u64,
    id: &'a SessionId,
    system_prompt: &'a str,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
    messages: &'a [Arc<Message>],
}

/// Reads the text of a session file.
pub fn parse(text: &str) -> Result<Session, FormatError> {
    // Editors on some systems begin a file with a mark that JSON does not know.
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    if text.trim().is_empty() {
        return Err(FormatError::Empty);
    }
    // The version first: a later one may have another shape altogether.
    let version = serde_json::from_str::<VersionOnly<'_>>(text).map_err(malformed)?.version;
    match version.map(RawValue::get) {
        Some("1") => {}
        Some(found) => {
            return Err(FormatError::Version { found: found.to_owned() });
        }
        None => {
            return Err(FormatError::Malformed { reason: "missing field `version`".to_owned() });
        }
    }
    let envelope: EnvelopeIn<'_> = serde_json::from_str(text).map_err(malformed)?;
    let read = |(index, raw): (usize, &RawValue)| {
        serde_json::from_str::<Message>(raw.get())
            .map(Arc::new)
            .map_err(|error| FormatError::Message { index, reason: without_place(&error) })
    };
    let messages = envelope.messages.unwrap_or_default();
    Ok(Session {
        id: envelope.id,
        system_prompt: envelope.system_prompt,
        created_at: envelope.created_at,
        updated_at: envelope.updated_at,
        messages: messages.into_iter().enumerate().map(read).collect::<Result<_, _>>()?,
    })
}

/// Writes the text of a session file: indented, with a line break at the end.
pub fn to_json(session: &Session) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(&EnvelopeOut {
        version: VERSION,
        id: &session.id,
        system_prompt: &session.system_prompt,
        created_at: session.created_at,
        updated_at: session.updated_at,
        messages: &session.messages,
    })?;
    text.push('\n');
    Ok(text)
}

fn malformed(error: serde_json::Error) -> FormatError {
    FormatError::Malformed { reason: error.to_string() }
}

/// Line and column within a message mean nothing to somebody who looks at the file.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}
