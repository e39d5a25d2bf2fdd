//! User messages as people, agents and other systems write them:
//!
//! | form                                     | from                                                   |
//! |------------------------------------------|--------------------------------------------------------|
//! | a text                                   | everyone                                               |
//! | `{"content": [block], "timestamp"?}`      | our own form; without a `timestamp` it is from now     |
//! | `{"role": "user", "parts": [part]}`       | Distri's form; a part is a text or an image            |
//!
//! Every interface that takes a message for an agent reads it here.

use chrono::{DateTime, Utc};
use serde::{Deserialize, de};
use serde_json::{Map, Value, json};

use super::{BlockWire, InputBlock, MessageError, UserMessage, input_blocks};

impl UserMessage {
    /// The message that `json` is, in any of the forms. Without a time of its own it is from `now`.
    pub fn from_input(json: Value, now: DateTime<Utc>) -> Result<Self, serde_json::Error> {
        match json {
            Value::String(text) => Ok(Self::text(text, now)),
            Value::Object(mut object) => {
                // Before anything that is missing.
                if let Some(Value::String(kind)) = object.get("type")
                    && kind != "user"
                {
                    return Err(wrong(MessageError::NotUser { found: kind.clone() }));
                }
                if object.contains_key("parts") {
                    return of_parts(&object, now);
                }
                if object.get("timestamp").is_none_or(Value::is_null) {
                    object.insert("timestamp".to_owned(), json!(now));
                }
                Self::deserialize(Value::Object(object))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                Err(wrong("expected a text, `{content}` or `{role, parts}`"))
            }
        }
    }
}

fn wrong(reason: impl std::fmt::Display) -> serde_json::Error {
    de::Error::custom(reason)
}

fn of_parts(
    object: &Map<String, Value>,
    now: DateTime<Utc>,
) -> Result<UserMessage, serde_json::Error> {
    match object.get("role") {
        None => {}
        Some(Value::String(role)) if role == "user" => {}
        Some(role) => return Err(wrong(format!("unknown role {role}, expected `user`"))),
    }
    let parts = object.get("parts").and_then(Value::as_array);
    let parts = parts.ok_or_else(|| wrong("`parts` must be a list"))?;
    let content = parts.iter().enumerate().map(|(index, part)| block(index, part));
    let written = object.get("created_at").and_then(Value::as_i64);
    let timestamp = written.and_then(DateTime::from_timestamp_millis).unwrap_or(now);
    Ok(UserMessage { content: content.collect::<Result<_, _>>()?, timestamp })
}

/// A part: `{"part_type", "data"}`, `{"type", "text"}`, `{"text"}` or a plain text.
fn block(index: usize, part: &Value) -> Result<InputBlock, serde_json::Error> {
    if let Value::String(text) = part {
        return Ok(InputBlock::text(text));
    }
    let word = |field: &str| part.get(field).and_then(Value::as_str);
    let kind = word("part_type").or_else(|| word("type")).or_else(|| word("kind"));
    let kind = kind.or_else(|| word("text").map(|_| "text")).unwrap_or_default();
    match kind {
        "text" => match word("text").or_else(|| word("data")) {
            Some(text) => Ok(InputBlock::text(text)),
            None => Err(wrong(format!("parts[{index}]: missing field `text`"))),
        },
        "image" => image(index, part),
        _ => Err(wrong(format!(
            "parts[{index}]: unknown part `{kind}`, expected one of `text`, `image`"
        ))),
    }
}

/// An image, whose bytes are beside its type or in `data` together with it.
fn image(index: usize, part: &Value) -> Result<InputBlock, serde_json::Error> {
    let inner = part.get("data").filter(|data| data.is_object()).unwrap_or(part);
    let word = |names: [&str; 2]| {
        let mut values = names.iter().filter_map(|name| inner.get(name));
        values.find_map(Value::as_str).map(str::to_owned)
    };
    let block = BlockWire::of_peer(
        "image".to_owned(),
        None,
        word(["data", "bytes"]),
        word(["media_type", "mime_type"]),
    );
    let at_its_place = |error: MessageError| {
        let reason = error.to_string();
        wrong(format!("parts[{index}]: {}", reason.trim_start_matches("content[0]: ")))
    };
    let blocks = input_blocks(vec![block], "user").map_err(at_its_place)?;
    blocks.into_iter().next().ok_or_else(|| wrong(format!("parts[{index}]: no image")))
}
