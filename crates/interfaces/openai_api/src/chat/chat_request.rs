//! A chat request, read from its JSON. A field that cannot be honored is refused by name; unknown fields are
//! ignored.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use antiphon_api::HISTORY_MESSAGES_MAX;
use antiphon_core::{
    METADATA_MAX, ModelOptions, RawJson, STOP_SEQUENCES_MAX, Sampling, Temperature, Tool,
    ToolChoice, visible,
};
use antiphon_interface_transport::answer::{AnswerError, AnswerRequest, AnswerStorage};
use axum::http::HeaderMap;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::chat::{canonical_messages, openai_messages};
use crate::openai_error::{Shape, unsupported};

/// The fields of a body, not yet parsed.
pub(crate) type Fields = BTreeMap<String, Box<RawValue>>;

/// A chat request.
#[derive(Debug)]
pub(crate) struct ChatRequest {
    pub(crate) answer: AnswerRequest,
    pub(crate) stream: bool,
    pub(crate) include_usage: bool,
}

/// Fields that are accepted only with their default value.
const DEFAULT_ONLY: &[(&str, &str)] = &[
    ("n", "1"),
    ("logprobs", "false"),
    ("top_logprobs", "0"),
    ("logit_bias", "{}"),
    ("modalities", "[\"text\"]"),
];

/// Fields that are never accepted.
const UNSUPPORTED: &[&str] =
    &["audio", "functions", "function_call", "web_search_options", "verbosity"];

/// Fields that canonical requests do not have.
const OPENAI_ONLY: &[&str] = &[
    "frequency_penalty",
    "max_completion_tokens",
    "metadata",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "reasoning_effort",
    "response_format",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream_options",
    "top_p",
    "user",
];

/// The header that OpenAI's libraries send with each request.
const OPENAI_HEADER: &str = "x-stainless-lang";

/// Whether a request is of one of OpenAI's libraries.
pub(crate) fn is_of_library(headers: &HeaderMap) -> bool {
    headers.contains_key(OPENAI_HEADER)
}

/// The shape of a request: canonical messages have `id` and `timestamp`. A request without messages is native unless
/// something else in it is clearly OpenAI's.
pub(crate) fn shape(fields: &Fields, headers: &HeaderMap) -> Shape {
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
    let default_only = DEFAULT_ONLY.iter().map(|(name, _)| name);
    let mut marks = default_only.chain(UNSUPPORTED).chain(OPENAI_ONLY);
    let is_openai = is_of_library(headers) || marks.any(|name| fields.contains_key(*name));
    let without_messages = messages.is_empty() && !is_openai;
    if without_messages || messages.iter().any(canonical) {
        Shape::Canonical
    } else {
        Shape::OpenAi
    }
}

impl ChatRequest {
    pub(crate) fn read(fields: &Fields, shape: Shape) -> Result<Self, AnswerError> {
        check_supported(fields)?;
        let messages: Vec<Box<RawValue>> = field(fields, "messages")?.unwrap_or_default();
        if messages.is_empty() {
            return Err(AnswerError::field(
                "messages",
                "missing or empty: send at least one message",
            ));
        }
        if messages.len() > HISTORY_MESSAGES_MAX {
            return Err(AnswerError::field("messages", format!("at most {HISTORY_MESSAGES_MAX}")));
        }
        let conversation = match shape {
            Shape::OpenAi => openai_messages::read(&messages)?,
            Shape::Canonical => canonical_messages::read(&messages)?,
        };
        let tools = tools(fields)?;
        let options: Option<StreamOptions> = field(fields, "stream_options")?;
        let stream: bool = field(fields, "stream")?.unwrap_or_default();
        if options.is_some() && !stream {
            return Err(AnswerError::field("stream_options", "allowed only with `stream`: true"));
        }
        let answer = AnswerRequest {
            model: field(fields, "model")?,
            conversation,
            previous: None,
            options: ModelOptions {
                temperature: temperature(fields)?,
                tool_choice: tool_choice(fields, &tools)?,
                thinking_tokens: None,
                sampling: sampling(fields)?,
            },
            max_tokens: max_tokens(fields)?,
            tools,
            schema: schema(fields)?,
            storage: AnswerStorage::Stored,
        };
        let include_usage = options.is_some_and(|options| options.include_usage == Some(true));
        Ok(Self { answer, stream, include_usage })
    }
}

pub(crate) fn temperature(fields: &Fields) -> Result<Option<Temperature>, AnswerError> {
    let temperature: Option<f64> = field(fields, "temperature")?;
    temperature.map(Temperature::new).transpose().map_err(|error| {
        AnswerError::field("temperature", format!("must be from 0 to 2, not {}", error.found))
    })
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

/// The value of a field; `None` when absent or `null`.
pub(crate) fn field<T: DeserializeOwned>(
    fields: &Fields,
    name: &str,
) -> Result<Option<T>, AnswerError> {
    let Some(raw) = fields.get(name) else { return Ok(None) };
    serde_json::from_str(raw.get()).map_err(|error| AnswerError::field(name, error))
}

fn check_supported(fields: &Fields) -> Result<(), AnswerError> {
    for (name, default) in DEFAULT_ONLY {
        let found: Value = field(fields, name)?.unwrap_or_default();
        let default_value: Value = serde_json::from_str(default).unwrap_or_default();
        let same = match (found.as_f64(), default_value.as_f64()) {
            (Some(found), Some(default)) => (found - default).abs() < f64::EPSILON,
            (Some(_) | None, _) => found == default_value,
        };
        if !same && !found.is_null() {
            return Err(unsupported(name));
        }
    }
    for name in UNSUPPORTED {
        if field::<Value>(fields, name)?.is_some_and(|value| !value.is_null()) {
            return Err(unsupported(name));
        }
    }
    Ok(())
}

/// Options that are sent to the provider as they are, if its wire knows them.
fn sampling(fields: &Fields) -> Result<Sampling, AnswerError> {
    Ok(Sampling {
        top_p: field(fields, "top_p")?,
        stop: stop(fields)?,
        seed: field(fields, "seed")?,
        presence_penalty: field(fields, "presence_penalty")?,
        frequency_penalty: field(fields, "frequency_penalty")?,
        reasoning_effort: field(fields, "reasoning_effort")?,
        parallel_tool_calls: field(fields, "parallel_tool_calls")?,
        metadata: metadata(fields)?,
    })
}

/// Longest name and longest value in the metadata, in characters.
const METADATA_NAME_MAX: usize = 64;
const METADATA_VALUE_MAX: usize = 512;

/// What the provider keeps with an answer that it stores: nothing unless the client asks it to store.
fn metadata(fields: &Fields) -> Result<BTreeMap<String, String>, AnswerError> {
    if field::<bool>(fields, "store")? != Some(true) {
        return Ok(BTreeMap::new());
    }
    let metadata: BTreeMap<String, String> = field(fields, "metadata")?.unwrap_or_default();
    let refuse = |message: String| Err(AnswerError::field("metadata", message));
    if metadata.len() > METADATA_MAX {
        return refuse(format!("at most {METADATA_MAX} entries"));
    }
    let is_long = |(name, value): (&String, &String)| {
        name.chars().count() > METADATA_NAME_MAX || value.chars().count() > METADATA_VALUE_MAX
    };
    if metadata.iter().any(is_long) {
        let message = format!(
            "a name has at most {METADATA_NAME_MAX} characters, a value {METADATA_VALUE_MAX}"
        );
        return refuse(message);
    }
    Ok(metadata)
}

/// One text, or a list of them.
fn stop(fields: &Fields) -> Result<Vec<String>, AnswerError> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum StopWire {
        One(String),
        Many(Vec<String>),
    }
    let refuse = |message: String| Err(AnswerError::field("stop", message));
    let Ok(stop) = field(fields, "stop") else {
        return refuse("expected a text, or a list of texts".to_owned());
    };
    let stop = match stop {
        None => Vec::new(),
        Some(StopWire::One(text)) => vec![text],
        Some(StopWire::Many(texts)) => texts,
    };
    if stop.len() > STOP_SEQUENCES_MAX {
        return refuse(format!("at most {STOP_SEQUENCES_MAX} texts"));
    }
    if stop.iter().any(String::is_empty) {
        return refuse("a text is empty: omit it".to_owned());
    }
    Ok(stop)
}

fn max_tokens(fields: &Fields) -> Result<Option<NonZeroU32>, AnswerError> {
    let read = |name| -> Result<Option<NonZeroU32>, AnswerError> {
        let tokens: Option<u32> = field(fields, name)?;
        let some =
            |n| NonZeroU32::new(n).ok_or_else(|| AnswerError::field(name, "must be more than 0"));
        tokens.map(some).transpose()
    };
    match (read("max_tokens")?, read("max_completion_tokens")?) {
        (Some(one), Some(other)) if one != other => Err(AnswerError::field(
            "max_tokens",
            "differs from `max_completion_tokens`: send one of them",
        )),
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

fn tools(fields: &Fields) -> Result<Vec<Arc<Tool>>, AnswerError> {
    let wires: Vec<ToolWire> = field(fields, "tools")?.unwrap_or_default();
    let mut tools = Vec::new();
    for (index, wire) in wires.into_iter().enumerate() {
        let field = format!("tools[{index}]");
        let Some(function) = wire.function.filter(|_| wire.r#type == "function") else {
            return Err(AnswerError::field(
                field,
                "expected a tool of type `function`, with a `function`",
            ));
        };
        let parameters = match function.parameters {
            Some(parameters) if parameters.is_object() => parameters,
            Some(_) => {
                return Err(AnswerError::field(field, "`parameters` must be a JSON Schema object"));
            }
            None => no_parameters(&field)?,
        };
        let description = function.description.unwrap_or_default();
        tools.push(Arc::new(Tool { name: function.name, description, parameters }));
    }
    Ok(tools)
}

pub(crate) fn no_parameters(field: &str) -> Result<RawJson, AnswerError> {
    let none = json!({ "type": "object", "properties": {} });
    RawJson::of(&none).map_err(|error| AnswerError::field(field, error))
}

fn tool_choice(fields: &Fields, tools: &[Arc<Tool>]) -> Result<ToolChoice, AnswerError> {
    let refuse = |message: &str| Err(AnswerError::field("tool_choice", message));
    let choice: Value = field(fields, "tool_choice")?.unwrap_or_default();
    let choice = match (&choice, choice.as_str()) {
        (Value::Null, _) => return Ok(ToolChoice::Auto),
        (_, Some("auto")) => ToolChoice::Auto,
        (_, Some("none")) => ToolChoice::None,
        (_, Some("required")) => ToolChoice::Required,
        (_, Some(found)) => {
            let found = visible(found);
            return refuse(&format!(
                "unknown value `{found}`, expected `auto`, `none`, `required`, or a function"
            ));
        }
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
            refuse("no such tool in `tools`")
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

fn schema(fields: &Fields) -> Result<Option<RawJson>, AnswerError> {
    const NAME: &str = "response_format";
    let Some(format) = field::<Option<FormatWire>>(fields, NAME)?.flatten() else {
        return Ok(None);
    };
    let object = || {
        let object = json!({ "type": "object" });
        RawJson::of(&object).map_err(|error| AnswerError::field(NAME, error))
    };
    match (format.r#type.as_str(), format.json_schema) {
        ("text", _) => Ok(None),
        ("json_object", _) => object().map(Some),
        ("json_schema", Some(SchemaWire { schema: Some(schema) })) => {
            antiphon_runtime::check_schema(&schema).map_err(|reason| {
                AnswerError::field("response_format.json_schema.schema", reason)
            })?;
            Ok(Some(schema))
        }
        ("json_schema", _) => {
            Err(AnswerError::field("response_format.json_schema.schema", "missing"))
        }
        (found, _) => {
            let found = visible(found);
            let reason =
                format!("unknown type `{found}`, expected `text`, `json_object` or `json_schema`");
            Err(AnswerError::field(NAME, reason))
        }
    }
}
