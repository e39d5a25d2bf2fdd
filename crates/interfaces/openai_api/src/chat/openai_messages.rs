//! Messages in OpenAI's shape.

use antiphon_core::port::{Clock, SystemClock};
use antiphon_core::{InputBlock, ToolArguments};
use antiphon_interface_transport::answer::{
    self, AnswerError, AssistantPart, Conversation, ConversationBuilder,
};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

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

/// The conversation of these messages.
pub(crate) fn read(messages: &[Box<RawValue>]) -> Result<Conversation, AnswerError> {
    let now = SystemClock.now();
    let mut builder = ConversationBuilder::new("messages", Vec::new());
    for (index, raw) in messages.iter().enumerate() {
        let field = format!("messages[{index}]");
        let wire: MessageWire =
            serde_json::from_str(raw.get()).map_err(|error| AnswerError::field(&field, error))?;
        if wire.function_call.is_some() {
            return Err(AnswerError::field(
                field,
                "`function_call` is not supported; use `tool_calls`",
            ));
        }
        let content = blocks(&format!("{field}.content"), wire.content)?;
        match wire.role.as_str() {
            "system" | "developer" => builder.system(text(&field, content)?),
            "user" => builder.user(&field, content, now)?,
            "assistant" => {
                let calls = calls(&field, wire.tool_calls.unwrap_or_default())?;
                let said = [AssistantPart::Text(text(&field, content)?)];
                let parts = said.into_iter().chain(calls).collect();
                builder.assistant(&field, parts, now)?;
            }
            "tool" => {
                let Some(id) = wire.tool_call_id else {
                    return Err(AnswerError::field(field, "`tool_call_id` is missing"));
                };
                builder.result(&field, &id, content, false, now)?;
            }
            other => {
                let known = "`system`, `developer`, `user`, `assistant` or `tool`";
                let message = format!("expected {known}, not `{other}`");
                return Err(AnswerError::field(format!("{field}.role"), message));
            }
        }
    }
    builder.end()
}

pub(crate) fn calls(field: &str, wires: Vec<CallWire>) -> Result<Vec<AssistantPart>, AnswerError> {
    let mut ids: Vec<String> = Vec::new();
    let mut calls = Vec::new();
    for (index, wire) in wires.into_iter().enumerate() {
        let field = format!("{field}.tool_calls[{index}]");
        let known = wire.r#type.as_deref().is_none_or(|kind| kind == "function");
        let Some(function) = wire.function.filter(|_| known) else {
            return Err(AnswerError::field(
                field,
                "expected a call of type `function`, with a `function`",
            ));
        };
        if ids.contains(&wire.id) {
            return Err(AnswerError::field(field, "two calls have the same `id`"));
        }
        let arguments = ToolArguments::from_model(function.arguments);
        calls.push(AssistantPart::call(&field, &wire.id, function.name, arguments)?);
        ids.push(wire.id);
    }
    Ok(calls)
}

/// A text, or a list of parts.
fn blocks(field: &str, content: Option<Value>) -> Result<Vec<InputBlock>, AnswerError> {
    match content {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![InputBlock::text(text)]),
        Some(Value::Array(parts)) => {
            let parts = parts.iter().enumerate();
            parts.map(|(index, part)| block(&format!("{field}[{index}]"), part)).collect()
        }
        Some(Value::Bool(_) | Value::Number(_) | Value::Object(_)) => {
            Err(AnswerError::field(field, "expected a text, or a list of parts"))
        }
    }
}

fn block(field: &str, part: &Value) -> Result<InputBlock, AnswerError> {
    match part["type"].as_str() {
        Some(kind @ ("text" | "refusal")) => match part[kind].as_str() {
            Some(text) => Ok(InputBlock::text(text)),
            None => Err(AnswerError::field(field, format!("`{kind}` is missing"))),
        },
        Some("image_url") => image(field, part["image_url"]["url"].as_str().unwrap_or_default()),
        Some(other) => {
            let message = format!("expected a part of type `text` or `image_url`, not `{other}`");
            Err(AnswerError::field(field, message))
        }
        None => Err(AnswerError::field(field, "`type` is missing")),
    }
}

/// An image in the request itself. A URL is not fetched, so that clients cannot make the server send requests.
pub(crate) fn image(field: &str, url: &str) -> Result<InputBlock, AnswerError> {
    let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    let Some((mime_type, data)) = inline else {
        let message = "image URLs are not fetched: send the image as `data:image/png;base64,…`";
        return Err(AnswerError::field(field, message));
    };
    answer::image(field, mime_type, data)
}

/// The text of a message that may have no images.
pub(crate) fn text(field: &str, content: Vec<InputBlock>) -> Result<String, AnswerError> {
    let mut whole = String::new();
    for block in content {
        match block {
            InputBlock::Text(text) => whole.push_str(&text.text),
            InputBlock::Image(_) => {
                return Err(AnswerError::field(field, "only user messages may have images"));
            }
        }
    }
    Ok(whole)
}
