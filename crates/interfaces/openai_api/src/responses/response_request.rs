//! A request for a response, read from its JSON. A field that cannot be honored is refused by name; unknown fields are
//! ignored.

use std::num::NonZeroU32;
use std::sync::Arc;

use antiphon_api::HISTORY_MESSAGES_MAX;
use antiphon_core::{ModelOptions, RawJson, ReasoningEffort, Sampling};
use antiphon_interface_transport::answer::{
    AnswerError, AnswerRequest, AnswerStorage, Conversation, OpenCalls,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::chat::chat_request::{Fields, field, temperature};
use crate::openai_error::unsupported;
use crate::responses::client_tools::ClientTools;
use crate::responses::input_items;

/// Fields that are never accepted.
const UNSUPPORTED: &[&str] = &["prompt", "max_tool_calls", "context_management"];

/// Fields that a response repeats, with their defaults.
const ECHOED: &[(&str, &str)] = &[
    ("instructions", "null"),
    ("max_output_tokens", "null"),
    ("metadata", "{}"),
    ("model", "null"),
    ("parallel_tool_calls", "true"),
    ("previous_response_id", "null"),
    ("reasoning", "{\"effort\":null,\"summary\":null}"),
    ("store", "true"),
    ("temperature", "null"),
    ("text", "{\"format\":{\"type\":\"text\"}}"),
    ("tool_choice", "\"auto\""),
    ("tools", "[]"),
    ("top_p", "null"),
    ("truncation", "\"disabled\""),
];

/// What a request continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Continues {
    Nothing,
    Response(String),
    Conversation(String),
}

/// A request for a response.
pub(crate) struct ResponseRequest {
    pub(crate) continues: Continues,
    pub(crate) store: bool,
    pub(crate) stream: bool,
    pub(crate) background: bool,
    pub(crate) tools: Arc<ClientTools>,
    pub(crate) echoed: Value,
}

#[derive(Deserialize)]
struct Reasoning {
    effort: Option<ReasoningEffort>,
}

#[derive(Deserialize)]
struct TextWire {
    format: Option<FormatWire>,
}

#[derive(Deserialize)]
struct FormatWire {
    r#type: String,
    schema: Option<RawJson>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ConversationWire {
    Id(String),
    Object { id: String },
}

impl ResponseRequest {
    pub(crate) fn read(fields: &Fields) -> Result<Self, AnswerError> {
        for name in UNSUPPORTED {
            if field::<Value>(fields, name)?.is_some_and(|value| !value.is_null()) {
                return Err(unsupported(name));
            }
        }
        if field::<u32>(fields, "top_logprobs")?.unwrap_or_default() > 0 {
            return Err(unsupported("top_logprobs"));
        }
        let response: Option<String> = field(fields, "previous_response_id")?;
        let conversation: Option<ConversationWire> = field(fields, "conversation")?;
        let continues = match (response, conversation) {
            (Some(_), Some(_)) => {
                let message = "send it or `conversation`, not both";
                return Err(AnswerError::field("previous_response_id", message));
            }
            (Some(id), None) => Continues::Response(id),
            (None, Some(ConversationWire::Id(id) | ConversationWire::Object { id })) => {
                Continues::Conversation(id)
            }
            (None, None) => Continues::Nothing,
        };
        let (stream, background) = (flag(fields, "stream")?, flag(fields, "background")?);
        let store = field(fields, "store")?.unwrap_or(true);
        if background && stream {
            return Err(AnswerError::field("background", "send it or `stream`, not both"));
        }
        if background && !store {
            return Err(AnswerError::field("background", "needs `store`: true"));
        }
        let wires: Vec<Value> = field(fields, "tools")?.unwrap_or_default();
        let tools = Arc::new(ClientTools::read(&wires)?);
        Ok(Self { continues, store, stream, background, tools, echoed: echoed(fields)? })
    }

    /// The request for an answer, behind calls that a previous response left open.
    pub(crate) fn answer(
        &self,
        fields: &Fields,
        open: OpenCalls,
    ) -> Result<AnswerRequest, AnswerError> {
        let reasoning: Option<Reasoning> = field(fields, "reasoning")?;
        let sampling = Sampling {
            top_p: field(fields, "top_p")?,
            reasoning_effort: reasoning.and_then(|reasoning| reasoning.effort),
            parallel_tool_calls: field(fields, "parallel_tool_calls")?,
            ..Sampling::default()
        };
        let choice: Value = field(fields, "tool_choice")?.unwrap_or_default();
        let max_tokens: Option<NonZeroU32> = field(fields, "max_output_tokens")?;
        Ok(AnswerRequest {
            model: field(fields, "model")?,
            conversation: conversation(fields, open)?,
            previous: None,
            options: ModelOptions {
                temperature: temperature(fields)?,
                tool_choice: self.tools.choice(&choice)?,
                thinking_tokens: None,
                sampling,
            },
            max_tokens,
            tools: self.tools.tools.clone(),
            schema: schema(fields)?,
            storage: if self.store { AnswerStorage::Stored } else { AnswerStorage::Unstored },
        })
    }
}

fn flag(fields: &Fields, name: &str) -> Result<bool, AnswerError> {
    Ok(field(fields, name)?.unwrap_or_default())
}

fn conversation(fields: &Fields, open: OpenCalls) -> Result<Conversation, AnswerError> {
    let input: Value = field(fields, "input")?.unwrap_or_default();
    let items = input.as_array().map_or(0, Vec::len);
    if items > HISTORY_MESSAGES_MAX {
        return Err(AnswerError::field("input", format!("at most {HISTORY_MESSAGES_MAX} items")));
    }
    input_items::read(&input, field(fields, "instructions")?, open)
}

fn echoed(fields: &Fields) -> Result<Value, AnswerError> {
    let mut echoed = json!({});
    for (name, default) in ECHOED {
        let value: Option<Value> = field(fields, name)?;
        let default = || serde_json::from_str(default).unwrap_or_default();
        echoed[name] = value.filter(|value| !value.is_null()).unwrap_or_else(default);
    }
    Ok(echoed)
}

fn schema(fields: &Fields) -> Result<Option<RawJson>, AnswerError> {
    const NAME: &str = "text.format";
    let text: Option<TextWire> = field(fields, "text")?;
    let Some(format) = text.and_then(|text| text.format) else { return Ok(None) };
    match (format.r#type.as_str(), format.schema) {
        ("text", _) => Ok(None),
        ("json_object", _) => {
            let object = RawJson::of(&json!({ "type": "object" }));
            object.map(Some).map_err(|error| AnswerError::field(NAME, error))
        }
        ("json_schema", Some(schema)) => {
            antiphon_runtime::check_schema(&schema)
                .map_err(|reason| AnswerError::field("text.format.schema", reason))?;
            Ok(Some(schema))
        }
        ("json_schema", None) => Err(AnswerError::field("text.format.schema", "missing")),
        _ => Err(AnswerError::field(NAME, "expected `text`, `json_object` or `json_schema`")),
    }
}
