//! A message request, read from its JSON. A field that cannot be honored is refused by name; unknown fields, and what
//! only Anthropic's servers do, are ignored.

use std::num::NonZeroU32;
use std::sync::Arc;

use antiphon_core::{
    ModelOptions, RawJson, ReasoningEffort, Sampling, Temperature, Tool, ToolChoice,
};
use antiphon_interface_transport::answer::{AnswerError, AnswerRequest, AnswerStorage};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::turns;

/// Code of the refusal of a conversation that is kept on the server.
pub(crate) const NO_THREADS: &str = "thread_unsupported_request";

/// Bytes of text per token, roughly.
const TOKEN_BYTES: usize = 4;

/// A message request.
pub(crate) struct MessageRequest {
    pub(crate) answer: AnswerRequest,
    pub(crate) stream: bool,
}

impl MessageRequest {
    pub(crate) fn read(body: &Value) -> Result<Self, AnswerError> {
        if !body.is_object() {
            return Err(AnswerError::field("body", "expected an object"));
        }
        if body["mcp_servers"].as_array().is_some_and(|servers| !servers.is_empty()) {
            return Err(unsupported("mcp_servers"));
        }
        if !body["container"].is_null() {
            return Err(unsupported("container"));
        }
        if !body["thread"].is_null() {
            return Err(no_threads());
        }
        let tools = tools(body)?;
        let temperature: Option<f64> = field(body, "temperature")?;
        let temperature = temperature.map(Temperature::new).transpose().map_err(|error| {
            AnswerError::field("temperature", format!("must be from 0 to 1, not {}", error.found))
        })?;
        let (tool_choice, parallel_tool_calls) = tool_choice(body, &tools)?;
        let stop: Option<Vec<String>> = field(body, "stop_sequences")?;
        let answer = AnswerRequest {
            model: field(body, "model")?,
            conversation: turns::read(body)?,
            previous: None,
            options: ModelOptions {
                temperature,
                tool_choice,
                thinking_tokens: thinking(body)?,
                sampling: Sampling {
                    top_p: field(body, "top_p")?,
                    stop: stop.unwrap_or_default(),
                    reasoning_effort: effort(body)?,
                    parallel_tool_calls,
                    ..Sampling::default()
                },
            },
            max_tokens: field::<NonZeroU32>(body, "max_tokens")?,
            tools,
            schema: schema(body)?,
            storage: AnswerStorage::Stored,
        };
        Ok(Self { answer, stream: field(body, "stream")?.unwrap_or_default() })
    }
}

/// Roughly the tokens of a request.
pub(crate) fn estimate(body: &Value) -> usize {
    let parts = [&body["system"], &body["messages"], &body["tools"]];
    let bytes: usize = parts.into_iter().map(|part| part.to_string().len()).sum();
    (bytes / TOKEN_BYTES).max(1)
}

/// Clients that keep a conversation on the server learn by the code that they have to send the whole of it.
fn no_threads() -> AnswerError {
    unsupported("thread").coded(NO_THREADS)
}

fn unsupported(name: &str) -> AnswerError {
    AnswerError::field(name, "not supported; omit it")
}

/// The value of a field; `None` when absent or `null`.
fn field<T: DeserializeOwned>(body: &Value, name: &str) -> Result<Option<T>, AnswerError> {
    let value = &body[name];
    if value.is_null() {
        return Ok(None);
    }
    T::deserialize(value).map(Some).map_err(|error| AnswerError::field(name, error))
}

fn thinking(body: &Value) -> Result<Option<NonZeroU32>, AnswerError> {
    match body["thinking"]["type"].as_str() {
        None | Some("disabled") => Ok(None),
        Some("enabled" | "adaptive") => field(&body["thinking"], "budget_tokens"),
        Some(_) => {
            Err(AnswerError::field("thinking.type", "expected `enabled`, `adaptive` or `disabled`"))
        }
    }
}

/// The effort of `output_config`; the highest word is Anthropic's own.
fn effort(body: &Value) -> Result<Option<ReasoningEffort>, AnswerError> {
    let effort = &body["output_config"]["effort"];
    if effort == "max" {
        return Ok(Some(ReasoningEffort::XHigh));
    }
    let effort = Option::deserialize(effort);
    effort.map_err(|error| AnswerError::field("output_config.effort", error))
}

/// The JSON Schema of the answer.
fn schema(body: &Value) -> Result<Option<RawJson>, AnswerError> {
    const NAME: &str = "output_config.format";
    let format = &body["output_config"]["format"];
    match (format["type"].as_str(), &format["schema"]) {
        (None, _) if format.is_null() => Ok(None),
        (Some("json_schema"), schema @ Value::Object(_)) => {
            RawJson::of(schema).map(Some).map_err(|error| AnswerError::field(NAME, error))
        }
        (Some(_) | None, _) => {
            Err(AnswerError::field(NAME, "expected `json_schema` with a `schema`"))
        }
    }
}

fn tools(body: &Value) -> Result<Vec<Arc<Tool>>, AnswerError> {
    let wires: Vec<Value> = field(body, "tools")?.unwrap_or_default();
    let mut tools = Vec::new();
    for (index, wire) in wires.iter().enumerate() {
        let field = format!("tools[{index}]");
        // Tools that Anthropic's servers run have a versioned type. They are ignored.
        if wire["type"].as_str().is_some_and(|kind| kind != "custom") {
            continue;
        }
        let Some(name) = wire["name"].as_str() else {
            return Err(AnswerError::field(format!("{field}.name"), "missing"));
        };
        let schema = match &wire["input_schema"] {
            Value::Null => json!({ "type": "object", "properties": {} }),
            schema @ Value::Object(_) => schema.clone(),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                let message = "expected a JSON Schema object";
                return Err(AnswerError::field(format!("{field}.input_schema"), message));
            }
        };
        let parameters = RawJson::of(&schema).map_err(|error| AnswerError::field(&field, error))?;
        let description = wire["description"].as_str().unwrap_or_default().to_owned();
        tools.push(Arc::new(Tool { name: name.to_owned(), description, parameters }));
    }
    Ok(tools)
}

fn tool_choice(
    body: &Value,
    tools: &[Arc<Tool>],
) -> Result<(ToolChoice, Option<bool>), AnswerError> {
    let choice = &body["tool_choice"];
    let one = choice["disable_parallel_tool_use"].as_bool().map(|disabled| !disabled);
    let refuse = |message: &str| Err(AnswerError::field("tool_choice", message));
    let choice = match choice["type"].as_str() {
        None if choice.is_null() => ToolChoice::Auto,
        Some("auto") => ToolChoice::Auto,
        Some("none") => ToolChoice::None,
        Some("any") if tools.is_empty() => return refuse("there are no `tools`"),
        Some("any") => ToolChoice::Required,
        Some("tool") => match choice["name"].as_str() {
            Some(name) if tools.iter().any(|tool| tool.name == name) => {
                ToolChoice::Named(name.to_owned())
            }
            Some(_) | None => return refuse("no such tool in `tools`"),
        },
        Some(_) | None => return refuse("expected `auto`, `any`, `tool` or `none`"),
    };
    Ok((choice, one))
}
