//! A request as it is written and compared.

use std::sync::Arc;

use antiphon_core::{Message, Request};
use chrono::DateTime;

use antiphon_core::redaction::redact_keys;

/// The JSON of `request`, without what looks like a key and with every message at the beginning
/// of 1970: no model is told when a message was written, and another run asks at another time.
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
