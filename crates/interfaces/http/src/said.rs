//! What somebody says: a text, or text and images.

use antiphon_core::port::{Clock, SystemClock};
use antiphon_core::{InputBlock, UserMessage};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::api_error::ApiError;

/// A message from a text or from a user message, which may leave out when it was written.
pub(crate) fn message(field: &str, said: &RawValue) -> Result<UserMessage, ApiError> {
    let wrong = |error: serde_json::Error| ApiError::invalid(format!("`{field}`: {error}"));
    let now = SystemClock.now();
    let message = match serde_json::from_str(said.get()).map_err(wrong)? {
        Value::String(text) => UserMessage::text(text, now),
        Value::Object(mut object) => {
            if object.get("timestamp").is_none_or(Value::is_null) {
                object.insert("timestamp".to_owned(), json!(now));
            }
            serde_json::from_value(Value::Object(object)).map_err(wrong)?
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            let expected = "expected a text, or a user message with `content`";
            return Err(ApiError::invalid(format!("`{field}`: {expected}")));
        }
    };
    check(field, &message)?;
    Ok(message)
}

/// Whether a message says anything.
pub(crate) fn check(field: &str, message: &UserMessage) -> Result<(), ApiError> {
    let blank = |block: &InputBlock| match block {
        InputBlock::Text(text) => text.text.trim().is_empty(),
        InputBlock::Image(_) => false,
    };
    if message.content.iter().all(blank) {
        return Err(ApiError::invalid(format!("`{field}`: there is nothing in it")));
    }
    Ok(())
}

/// Blocks from a text or from a list of them. A result may be empty.
pub(crate) fn blocks(field: &str, said: &RawValue) -> Result<Vec<InputBlock>, ApiError> {
    let wrong = |error: serde_json::Error| ApiError::invalid(format!("`{field}`: {error}"));
    match serde_json::from_str(said.get()).map_err(wrong)? {
        Value::String(text) => Ok(vec![InputBlock::text(text)]),
        Value::Array(blocks) => {
            let mut object = Map::new();
            object.insert("content".to_owned(), Value::Array(blocks));
            object.insert("timestamp".to_owned(), json!(SystemClock.now()));
            let read: UserMessage = serde_json::from_value(Value::Object(object)).map_err(wrong)?;
            Ok(read.content)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            Err(ApiError::invalid(format!("`{field}`: expected a text, or a list of blocks")))
        }
    }
}
