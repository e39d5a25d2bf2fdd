//! Messages from users and results of their tools: a text, or text and images.

use antiphon_core::port::{Clock, SystemClock};
use antiphon_core::{ErrorResponse, InputBlock, UserMessage};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::request::request_error::invalid_request;

/// The message in `field`, in any of the forms of [`UserMessage::from_input`].
pub fn parse_message(field: &str, json: &RawValue) -> Result<UserMessage, ErrorResponse> {
    let wrong = |error: serde_json::Error| invalid_request(format!("`{field}`: {error}"));
    let json: Value = serde_json::from_str(json.get()).map_err(wrong)?;
    let message = UserMessage::from_input(json, SystemClock.now()).map_err(wrong)?;
    check_message(field, &message)?;
    Ok(message)
}

/// Refuses a message that has neither text nor an image.
pub fn check_message(field: &str, message: &UserMessage) -> Result<(), ErrorResponse> {
    let blank = |block: &InputBlock| match block {
        InputBlock::Text(text) => text.text.trim().is_empty(),
        InputBlock::Image(_) => false,
    };
    if message.content.iter().all(blank) {
        return Err(invalid_request(format!("`{field}`: it is empty: send a text or an image")));
    }
    Ok(())
}

/// The blocks in `field`: a text, or a list of blocks, which may be empty.
pub fn parse_blocks(field: &str, json: &RawValue) -> Result<Vec<InputBlock>, ErrorResponse> {
    let wrong = |error: serde_json::Error| invalid_request(format!("`{field}`: {error}"));
    match serde_json::from_str(json.get()).map_err(wrong)? {
        Value::String(text) => Ok(vec![InputBlock::text(text)]),
        Value::Array(blocks) => {
            let mut object = Map::new();
            object.insert("content".to_owned(), Value::Array(blocks));
            object.insert("timestamp".to_owned(), json!(SystemClock.now()));
            let read: UserMessage = serde_json::from_value(Value::Object(object)).map_err(wrong)?;
            Ok(read.content)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            Err(invalid_request(format!("`{field}`: expected a text, or a list of blocks")))
        }
    }
}
