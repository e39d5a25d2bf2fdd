//! A chat request, from its JSON. What cannot be honored is refused with the name of the field;
//! fields that nobody knows are ignored.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use antiphon_core::{Message, RawJson, Temperature, Tool, ToolChoice};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::refusal::{Refusal, Shape};
use super::{canonical, openai};
use crate::task_request::HISTORY_MESSAGES_MAX;

/// The fields of a body, unread.
pub(crate) type Fields = BTreeMap<String, Box<RawValue>>;

/// A chat request.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) model: Option<String>,
    pub(crate) said: Said,
    pub(crate) temperature: Option<Temperature>,
    pub(crate) max_tokens: Option<NonZeroU32>,
    pub(crate) tools: Vec<Tool>,
    pub(crate) tool_choice: ToolChoice,
    pub(crate) schema: Option<RawJson>,
    pub(crate) stream: bool,
    pub(crate) include_usage: bool,
}

/// A conversation that ends with something to answer.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) system: String,
    pub(crate) messages: Vec<Arc<Message>>,
}

/// Fields that can only be left as they are, and the value that means so.
const FIXED: &[(&str, &str)] = &[
    ("n", "1"),
    ("top_p", "1"),
    ("presence_penalty", "0"),
    ("frequency_penalty", "0"),
    ("logprobs", "false"),
    ("top_logprobs", "0"),
    ("logit_bias", "{}"),
    ("stop", "[]"),
    ("parallel_tool_calls", "true"),
    ("modalities", "[\"text\"]"),
];

/// Fields that cannot be honored at all.
const UNSUPPORTED: &[&str] = &[
    "seed",
    "audio",
    "functions",
    "function_call",
    "web_search_options",
    "reasoning_effort",
    "verbosity",
];

/// The words in which messages are written: canonical ones carry `id` and `timestamp`.
pub(crate) fn shape(fields: &Fields) -> Shape {
    #[derive(Deserialize)]
    struct Marks {
        id: Option<serde::de::IgnoredAny>,
        timestamp: Option<serde::de::IgnoredAny>,
    }
    let messages = fields.get("messages").and_then(|raw| serde_json::from_str(raw.get()).ok());
    let messages: Vec<&RawValue> = messages.unwrap_or_default();
    let canonical = |message: &&RawValue| {
        let marks = serde_json::from_str::<Marks>(message.get());
        marks.is_ok_and(|marks| marks.id.is_some() && marks.timestamp.is_some())
    };
    if messages.iter().any(canonical) { Shape::Canonical } else { Shape::OpenAi }
}

impl Asked {
    pub(crate) fn read(fields: &Fields, shape: Shape) -> Result<Self, Refusal> {
        check_fixed(fields)?;
        let messages: Vec<Box<RawValue>> = field(fields, "messages")?.unwrap_or_default();
        if messages.is_empty() {
            return Err(Refusal::field("messages", "say something: it is missing or empty"));
        }
        if messages.len() > HISTORY_MESSAGES_MAX {
            return Err(Refusal::field("messages", format!("{HISTORY_MESSAGES_MAX} at most")));
        }
        let said = match shape {
            Shape::OpenAi => openai::read(&messages)?,
            Shape::Canonical => canonical::read(&messages)?,
        };
        let temperature: Option<f64> = field(fields, "temperature")?;
        let temperature = temperature.map(Temperature::new).transpose();
        let tools = tools(fields)?;
        let options: Option<StreamOptions> = field(fields, "stream_options")?;
        let stream: bool = field(fields, "stream")?.unwrap_or_default();
        if options.is_some() && !stream {
            return Err(Refusal::field("stream_options", "only with `stream`: true"));
        }
        Ok(Self {
            model: field(fields, "model")?,
            said,
            temperature: temperature.map_err(|error| {
                Refusal::field("temperature", format!("from 0 to 2, not {}", error.found))
            })?,
            max_tokens: max_tokens(fields)?,
            tool_choice: tool_choice(fields, &tools)?,
            tools,
            schema: schema(fields)?,
            stream,
            include_usage: options.is_some_and(|options| options.include_usage == Some(true)),
        })
    }
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

/// A field; `null` is as good as none.
fn field<T: DeserializeOwned>(fields: &Fields, name: &str) -> Result<Option<T>, Refusal> {
    let Some(raw) = fields.get(name) else { return Ok(None) };
    serde_json::from_str(raw.get()).map_err(|error| Refusal::field(name, error))
}

fn check_fixed(fields: &Fields) -> Result<(), Refusal> {
    for (name, fixed) in FIXED {
        let found: Value = field(fields, name)?.unwrap_or_default();
        let fixed_value: Value = serde_json::from_str(fixed).unwrap_or_default();
        let same = match (found.as_f64(), fixed_value.as_f64()) {
            (Some(found), Some(fixed)) => (found - fixed).abs() < f64::EPSILON,
            (Some(_) | None, _) => found == fixed_value,
        };
        if !same && !found.is_null() {
            let message = format!("only {fixed} can be had here: leave it out");
            return Err(Refusal::field(*name, message).coded("unsupported_parameter"));
        }
    }
    for name in UNSUPPORTED {
        if field::<Value>(fields, name)?.is_some_and(|value| !value.is_null()) {
            let instead = match *name {
                "functions" | "function_call" => "use `tools` and `tool_choice`",
                _ => "it cannot be honored: leave it out",
            };
            return Err(Refusal::field(*name, instead).coded("unsupported_parameter"));
        }
    }
    Ok(())
}

fn max_tokens(fields: &Fields) -> Result<Option<NonZeroU32>, Refusal> {
    let read = |name| -> Result<Option<NonZeroU32>, Refusal> {
        let tokens: Option<u32> = field(fields, name)?;
        let some = |n| NonZeroU32::new(n).ok_or_else(|| Refusal::field(name, "more than 0"));
        tokens.map(some).transpose()
    };
    match (read("max_tokens")?, read("max_completion_tokens")?) {
        (Some(one), Some(other)) if one != other => {
            Err(Refusal::field("max_tokens", "differs from `max_completion_tokens`: send one"))
        }
        (one, other) => Ok(one.or(other)),
    }
}

#[derive(Deserialize)]
struct ToolWire {
    r#type: String,
    function: Option<FunctionWire>,
}

#[derive(Deserialize)]
struct FunctionWire {
    name: String,
    description: Option<String>,
    parameters: Option<RawJson>,
}

fn tools(fields: &Fields) -> Result<Vec<Tool>, Refusal> {
    let wires: Vec<ToolWire> = field(fields, "tools")?.unwrap_or_default();
    let mut tools = Vec::new();
    for (index, wire) in wires.into_iter().enumerate() {
        let place = format!("tools[{index}]");
        let Some(function) = wire.function.filter(|_| wire.r#type == "function") else {
            return Err(Refusal::field(place, "only tools of type `function`, with a `function`"));
        };
        let parameters = match function.parameters {
            Some(parameters) if parameters.is_object() => parameters,
            Some(_) => return Err(Refusal::field(place, "`parameters` is a JSON Schema object")),
            None => no_parameters(&place)?,
        };
        let description = function.description.unwrap_or_default();
        tools.push(Tool { name: function.name, description, parameters });
    }
    Ok(tools)
}

fn no_parameters(place: &str) -> Result<RawJson, Refusal> {
    let none = json!({ "type": "object", "properties": {} });
    RawJson::of(&none).map_err(|error| Refusal::field(place, error))
}

fn tool_choice(fields: &Fields, tools: &[Tool]) -> Result<ToolChoice, Refusal> {
    let refuse = |message: &str| Err(Refusal::field("tool_choice", message));
    let choice: Value = field(fields, "tool_choice")?.unwrap_or_default();
    let choice = match (&choice, choice.as_str()) {
        (Value::Null, _) => return Ok(ToolChoice::Auto),
        (_, Some("auto")) => ToolChoice::Auto,
        (_, Some("none")) => ToolChoice::None,
        (_, Some("required")) => ToolChoice::Required,
        (_, Some(_)) => return refuse("one of `auto`, `none`, `required`, or a function"),
        (choice, None) => match choice["function"]["name"].as_str() {
            Some(name) if choice["type"] == "function" => ToolChoice::Named(name.to_owned()),
            Some(_) | None => {
                return refuse("expected {\"type\": \"function\", \"function\": {\"name\": …}}");
            }
        },
    };
    match &choice {
        ToolChoice::Required if tools.is_empty() => refuse("there are no `tools`"),
        ToolChoice::Named(name) if !tools.iter().any(|tool| tool.name == *name) => {
            refuse("there is no such tool in `tools`")
        }
        ToolChoice::Auto | ToolChoice::None | ToolChoice::Required | ToolChoice::Named(_) => {
            Ok(choice)
        }
    }
}

#[derive(Deserialize)]
struct FormatWire {
    r#type: String,
    json_schema: Option<SchemaWire>,
}

#[derive(Deserialize)]
struct SchemaWire {
    schema: Option<RawJson>,
}

fn schema(fields: &Fields) -> Result<Option<RawJson>, Refusal> {
    const NAME: &str = "response_format";
    let Some(format) = field::<Option<FormatWire>>(fields, NAME)?.flatten() else {
        return Ok(None);
    };
    let object = || {
        let object = json!({ "type": "object" });
        RawJson::of(&object).map_err(|error| Refusal::field(NAME, error))
    };
    match (format.r#type.as_str(), format.json_schema) {
        ("text", _) => Ok(None),
        ("json_object", _) => object().map(Some),
        ("json_schema", Some(SchemaWire { schema: Some(schema) })) => {
            antiphon_runtime::check_schema(&schema)
                .map_err(|reason| Refusal::field("response_format.json_schema.schema", reason))?;
            Ok(Some(schema))
        }
        ("json_schema", _) => {
            Err(Refusal::field("response_format.json_schema.schema", "it is missing"))
        }
        _ => Err(Refusal::field(NAME, "one of `text`, `json_object`, `json_schema`")),
    }
}
