//! Messages as OpenAI's clients write them.

use antiphon_core::port::{Clock, SystemClock};
use antiphon_core::{InputBlock, ToolArguments, ToolCallBlock, UserMessage};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::asked::Said;
use super::pairing::{Pairing, call_id};
use super::refusal::Refusal;

#[derive(Deserialize)]
struct MessageWire {
    role: String,
    content: Option<Value>,
    tool_calls: Option<Vec<CallWire>>,
    tool_call_id: Option<String>,
    function_call: Option<Value>,
}

#[derive(Deserialize)]
pub(crate) struct CallWire {
    id: String,
    r#type: Option<String>,
    function: Option<FunctionWire>,
}

#[derive(Deserialize)]
struct FunctionWire {
    name: String,
    #[serde(default)]
    arguments: String,
}

/// The conversation in these messages.
pub(crate) fn read(messages: &[Box<RawValue>]) -> Result<Said, Refusal> {
    let now = SystemClock.now();
    let mut pairing = Pairing::default();
    for (index, raw) in messages.iter().enumerate() {
        let place = format!("messages[{index}]");
        let wire: MessageWire =
            serde_json::from_str(raw.get()).map_err(|error| Refusal::field(&place, error))?;
        if wire.function_call.is_some() {
            return Err(Refusal::field(place, "`function_call`: use `tool_calls`"));
        }
        let content = blocks(&format!("{place}.content"), wire.content)?;
        match wire.role.as_str() {
            "system" | "developer" => pairing.system(text(&place, content)?),
            "user" => pairing.user(&place, content, now)?,
            "assistant" => {
                let calls = calls(&place, wire.tool_calls.unwrap_or_default())?;
                pairing.assistant(&place, &text(&place, content)?, calls, now)?;
            }
            "tool" => {
                let Some(id) = wire.tool_call_id else {
                    return Err(Refusal::field(place, "`tool_call_id` is missing"));
                };
                pairing.result(&place, &id, content, now)?;
            }
            other => {
                let known = "`system`, `developer`, `user`, `assistant` or `tool`";
                let message = format!("expected {known}, not `{other}`");
                return Err(Refusal::field(format!("{place}.role"), message));
            }
        }
    }
    pairing.end()
}

pub(crate) fn calls(place: &str, wires: Vec<CallWire>) -> Result<Vec<ToolCallBlock>, Refusal> {
    let mut calls: Vec<ToolCallBlock> = Vec::new();
    for (index, wire) in wires.into_iter().enumerate() {
        let place = format!("{place}.tool_calls[{index}]");
        let known = wire.r#type.as_deref().is_none_or(|kind| kind == "function");
        let Some(function) = wire.function.filter(|_| known) else {
            return Err(Refusal::field(place, "only calls of type `function`, with a `function`"));
        };
        let id = call_id(&place, &wire.id)?;
        if calls.iter().any(|call| call.id == id) {
            return Err(Refusal::field(place, "two calls have the same `id`"));
        }
        let arguments = ToolArguments::from_model(function.arguments);
        calls.push(ToolCallBlock { id, name: function.name, arguments, signature: None });
    }
    Ok(calls)
}

/// A text, or a list of parts.
fn blocks(place: &str, content: Option<Value>) -> Result<Vec<InputBlock>, Refusal> {
    match content {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![InputBlock::text(text)]),
        Some(Value::Array(parts)) => {
            let parts = parts.iter().enumerate();
            parts.map(|(index, part)| block(&format!("{place}[{index}]"), part)).collect()
        }
        Some(Value::Bool(_) | Value::Number(_) | Value::Object(_)) => {
            Err(Refusal::field(place, "expected a text, or a list of parts"))
        }
    }
}

fn block(place: &str, part: &Value) -> Result<InputBlock, Refusal> {
    match part["type"].as_str() {
        Some(kind @ ("text" | "refusal")) => match part[kind].as_str() {
            Some(text) => Ok(InputBlock::text(text)),
            None => Err(Refusal::field(place, format!("`{kind}` is missing"))),
        },
        Some("image_url") => image(place, part["image_url"]["url"].as_str().unwrap_or_default()),
        Some(other) => {
            let message = format!("parts are `text` or `image_url`, not `{other}`");
            Err(Refusal::field(place, message))
        }
        None => Err(Refusal::field(place, "`type` is missing")),
    }
}

/// An image that comes along. One that lies elsewhere is not fetched: nobody sends this server about.
fn image(place: &str, url: &str) -> Result<InputBlock, Refusal> {
    let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    let Some((mime_type, data)) = inline else {
        let message = "send the image itself, as `data:image/png;base64,…`: none is fetched";
        return Err(Refusal::field(place, message));
    };
    let block = json!({ "type": "image", "mime_type": mime_type, "data": data });
    let message = json!({ "content": [block], "timestamp": SystemClock.now() });
    let read: Result<UserMessage, _> = serde_json::from_value(message);
    let read = read.map_err(|error| Refusal::field(place, error))?;
    read.content.into_iter().next().ok_or_else(|| Refusal::field(place, "there is no image in it"))
}

/// What may hold text alone.
fn text(place: &str, content: Vec<InputBlock>) -> Result<String, Refusal> {
    let mut whole = String::new();
    for block in content {
        match block {
            InputBlock::Text(text) => whole.push_str(&text.text),
            InputBlock::Image(_) => return Err(Refusal::field(place, "only a user sends images")),
        }
    }
    Ok(whole)
}
