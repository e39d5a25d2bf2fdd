//! The text of a session file.
//!
//! ```json
//! {"version":1,"id":"…","system_prompt":"…","created_at":"…","updated_at":"…","messages":[…]}
//! ```
//!
//! The wire types are private. The JSON of a message is the domain's own.

use std::sync::Arc;

use antiphon_core::{AssistantBlock, Message, Session, SessionId, Signature};
use chrono::{DateTime, Utc};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The version written, and the only one read.
pub const VERSION: u64 = 1;

/// Why a text is not a session file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// The file is empty.
    #[error("the file is empty")]
    Empty,
    /// The text is not JSON, or a field is wrong.
    #[error("not a session file: {reason}")]
    Malformed {
        /// What is wrong, and where.
        reason: String,
    },
    /// The version is not supported.
    #[error("session file version {found} is not supported, only {VERSION}")]
    Version {
        /// The version, as written in the file.
        found: String,
    },
    /// A message is wrong.
    #[error("messages[{index}]: {reason}")]
    Message {
        /// Index of the message, from 0.
        index: usize,
        /// What is wrong with the message.
        reason: String,
    },
}

#[derive(Deserialize)]
struct VersionOnly<'a> {
    #[serde(borrow)]
    version: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct MessagesOnly<'a> {
    /// Some programs write `null` for an empty list.
    #[serde(borrow)]
    messages: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct TypeOnly {
    #[serde(rename = "type")]
    kind: Option<String>,
}

#[derive(Deserialize)]
struct EnvelopeIn {
    id: SessionId,
    #[serde(default)]
    system_prompt: String,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
    /// Required, and read before: see [`MessagesOnly`].
    #[serde(rename = "messages")]
    _messages: IgnoredAny,
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
    // Some editors begin a file with a byte order mark, which is not JSON.
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    if text.trim().is_empty() {
        return Err(FormatError::Empty);
    }
    if !text.trim_start().starts_with('{') {
        // The fields of a record could be read from a list, too.
        let reason = match serde_json::from_str::<serde_json::Value>(text) {
            Ok(value) => format!("it is {}, and a session file is an object", kind(&value)),
            Err(error) => error.to_string(),
        };
        return Err(FormatError::Malformed { reason });
    }
    // The version first: a later version may have other fields.
    let version = serde_json::from_str::<VersionOnly<'_>>(text).map_err(malformed)?.version;
    if let Some(found) = version.map(RawValue::get).filter(|found| *found != "1") {
        return Err(FormatError::Version { found: found.to_owned() });
    }
    // A message that cannot be read is named before a field that is missing.
    let messages = messages(text)?;
    if version.is_none() {
        return Err(FormatError::Malformed { reason: "missing field `version`".to_owned() });
    }
    let envelope: EnvelopeIn = serde_json::from_str(text).map_err(malformed)?;
    let EnvelopeIn { id, system_prompt, created_at, updated_at, .. } = envelope;
    Ok(Session { id, system_prompt, created_at, updated_at, messages })
}

fn messages(text: &str) -> Result<Vec<Arc<Message>>, FormatError> {
    let read = |(index, raw): (usize, &RawValue)| {
        let message = message(raw.get());
        message.map(Arc::new).map_err(|reason| FormatError::Message { index, reason })
    };
    let MessagesOnly { messages } = serde_json::from_str(text).map_err(malformed)?;
    let messages = messages.unwrap_or_default();
    // An unknown type is named before anything that is wrong or missing in any message.
    for (index, raw) in messages.iter().enumerate() {
        if let Ok(TypeOnly { kind: Some(kind) }) = serde_json::from_str(raw.get()) {
            Message::check_type(&kind)
                .map_err(|error| FormatError::Message { index, reason: error.to_string() })?;
        }
    }
    messages.into_iter().enumerate().map(read).collect()
}

/// Reads one message. An error names the field, as in `content[0].signature`.
fn message(text: &str) -> Result<Message, String> {
    let mut json = serde_json::Deserializer::from_str(text);
    let message: Message = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let (path, reason) = (error.path().to_string(), without_place(error.inner()));
        // The path of the message itself.
        if path == "." { reason } else { format!("{path}: {reason}") }
    })?;
    check_signatures(&message)?;
    Ok(message)
}

/// Refuses a signature that is not base64. It is kept as it is written: some providers use the alphabet for addresses,
/// and some leave the padding out.
fn check_signatures(message: &Message) -> Result<(), String> {
    let Message::Assistant(message) = message else { return Ok(()) };
    for (index, block) in message.content.iter().enumerate() {
        let signature = match block {
            AssistantBlock::Thinking(thinking) => &thinking.signature,
            AssistantBlock::ToolCall(call) => &call.signature,
            AssistantBlock::Text(_) | AssistantBlock::Opaque(_) => &None,
        };
        if signature.as_ref().is_some_and(|Signature(text)| !is_base64(text)) {
            return Err(format!(
                "content[{index}].signature: it is not base64: remove it, or export the session again"
            ));
        }
    }
    Ok(())
}

fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let is_digit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '-' | '_');
    !digits.is_empty() && text.len() - digits.len() <= 2 && digits.chars().all(is_digit)
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

fn kind(value: &serde_json::Value) -> &'static str {
    match value {
        serde_json::Value::Null => "`null`",
        serde_json::Value::Bool(_) => "a boolean",
        serde_json::Value::Number(_) => "a number",
        serde_json::Value::String(_) => "a text",
        serde_json::Value::Array(_) => "a list",
        serde_json::Value::Object(_) => "an object",
    }
}

fn malformed(error: serde_json::Error) -> FormatError {
    FormatError::Malformed { reason: error.to_string() }
}

/// Line and column count within the message, not within the file: leave them out.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}
