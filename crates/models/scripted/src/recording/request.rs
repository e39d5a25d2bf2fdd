//! The recorded form of a request.

use std::sync::Arc;

use antiphon_core::{Message, Request};
use chrono::DateTime;

use antiphon_core::redaction::redact_keys;

/// The JSON of `request`, with keys redacted and the time of every message set to 1970: models do
/// not see these times, and another run has other times.
pub(crate) fn written(request: &Request) -> Result<String, serde_json::Error> {
    let mut request = request.clone();
    for message in &mut request.messages {
        match Arc::make_mut(message) {
            Message::User(user) => user.timestamp = DateTime::UNIX_EPOCH,
            Message::Assistant(answer) => answer.timestamp = DateTime::UNIX_EPOCH,
            Message::ToolResult(result) => result.timestamp = DateTime::UNIX_EPOCH,
        }
    }
    Ok(redact_keys(&serde_json::to_string(&request)?))
}
