//! Parses the content of a request file into an order. `folder/requester_folder.rs` reads the file.
//!
//! | action                 | needs                                | may have                             |
//! |------------------------|--------------------------------------|--------------------------------------|
//! | `spawn_agent`          | `name`, `profile`                    | `context`                            |
//! | `stop_agent`           | `name`                               |                                      |
//! | `update_agent_context` | `name`, `context`                    |                                      |
//! | `send`                 | `name`, and `message` or `intent`    | `params`, `mode`, `salience`, `wake` |
//! | `invoke`               | `prompt`                             | `name`, `model`, `wait`              |
//! | `respond`              | `requestId`, and `message` or `result` | `status`                           |
//! | `cancel`               | `taskId`                             |                                      |
//!
//! Every action may have an `id`. Unknown fields are ignored; a known field must not appear twice.
//! Texts are trimmed, and a blank text counts as missing.

use antiphon_core::{
    AgentName, Command, CommandError, HandlingMode, InteractionContent, InteractionId, ModelRef,
    OrchestratorRequest, Order, RawJson, ResponseStatus, Salience, TaskId, Wait, Wake,
};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::digest::trimmed;
use crate::fault::Fault;

/// Longest `id`, in bytes.
pub const ID_BYTES_MAX: usize = 128;

/// A valid request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Request {
    pub(crate) id: Option<String>,
    pub(crate) order: Order,
}

/// Why a text is not a valid request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ParseError {
    /// Not a JSON object. The file may still be incomplete.
    Incomplete(Fault),
    /// A JSON object that is not a valid request. With its `id`, if that is valid.
    Invalid { id: Option<String>, fault: Fault },
}

/// Parses the content of a file.
pub(crate) fn parse(bytes: &[u8]) -> Result<Request, ParseError> {
    let bytes = trimmed(bytes);
    if !bytes.starts_with(b"{") {
        let problem = if bytes.is_empty() { "it is empty" } else { "it is not a JSON object" };
        return Err(ParseError::Incomplete(Fault::invalid(format_args!(
            "{problem}: write an object such as {{\"action\":\"stop_agent\",\"name\":\"reviewer\"}}"
        ))));
    }
    // Only the syntax is checked here.
    if let Err(error) = serde_json::from_slice::<IgnoredAny>(bytes) {
        return Err(ParseError::Incomplete(Fault::invalid(format_args!(
            "it is not JSON: {error}"
        ))));
    }
    let invalid = |fault| ParseError::Invalid { id: None, fault };
    let head: Head = read(bytes).map_err(invalid)?;
    let id = head.id.map(id).transpose().map_err(invalid)?;
    let action = match head.action {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(action)) => action,
        Some(other) => other.to_string(),
    };
    match order(action.trim(), bytes) {
        Ok(order) => Ok(Request { id, order }),
        Err(fault) => Err(ParseError::Invalid { id, fault }),
    }
}

#[derive(Deserialize)]
struct Head {
    action: Option<Value>,
    id: Option<Value>,
}

#[derive(Deserialize)]
struct SendWire {
    name: Option<String>,
    message: Option<String>,
    blocks: Option<Value>,
    intent: Option<String>,
    params: Option<Value>,
    mode: Option<HandlingMode>,
    salience: Option<Salience>,
    wake: Option<bool>,
}

#[derive(Deserialize)]
struct InvokeWire {
    name: Option<String>,
    prompt: Option<String>,
    model: Option<String>,
    wait: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RespondWire {
    request_id: Option<String>,
    message: Option<String>,
    #[serde(default, deserialize_with = "present")]
    result: Option<Value>,
    status: Option<ResponseStatus>,
}

/// Reads `null` as a value, so that it differs from an absent field.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CancelWire {
    task_id: Option<String>,
}

fn order(action: &str, bytes: &[u8]) -> Result<Order, Fault> {
    match action {
        "send" => send(read(bytes)?),
        "invoke" => invoke(read(bytes)?),
        "respond" => respond(read(bytes)?),
        "cancel" => cancel(read(bytes)?),
        _ => control(read(bytes)?),
    }
}

fn control(request: OrchestratorRequest) -> Result<Order, Fault> {
    let command = request.validate().map_err(Fault::invalid)?;
    match &command {
        Command::SpawnAgent { name, .. }
        | Command::StopAgent { name }
        | Command::UpdateAgentContext { name, .. } => agent_name(name)?,
    };
    Ok(Order::Control(command))
}

fn send(wire: SendWire) -> Result<Order, Fault> {
    let to = agent_name(&need("send", "name", wire.name)?)?;
    let content = match (non_blank(wire.message), wire.blocks, non_blank(wire.intent)) {
        (Some(_), _, Some(_)) | (_, Some(_), Some(_)) => {
            return Err(Fault::invalid("`send` has a `message` or an `intent`, not both"));
        }
        (Some(body), None, None) => InteractionContent::Message { body, blocks: None },
        (body, Some(blocks), None) => message_of(body.unwrap_or_default(), &blocks)?,
        (None, None, Some(intent)) => {
            let params = wire.params.unwrap_or_default();
            // A value in the journal must survive a round trip.
            RawJson::of(&params)
                .map_err(|error| Fault::invalid(format_args!("`params`: {error}")))?;
            InteractionContent::Request { intent, params }
        }
        (None, None, None) => return Err(missing("send", "message")),
    };
    Ok(Order::Send {
        to,
        content,
        mode: wire.mode.unwrap_or_default(),
        salience: wire.salience,
        wake: if wire.wake == Some(false) { Wake::No } else { Wake::Yes },
    })
}

/// A message with texts and images.
fn message_of(body: String, blocks: &Value) -> Result<InteractionContent, Fault> {
    let message = json!({ "type": "message", "body": body, "blocks": blocks });
    let content: InteractionContent = serde_json::from_value(message)
        .map_err(|error| Fault::invalid(format_args!("`blocks`: {error}")))?;
    if content.is_empty() {
        return Err(missing("send", "message"));
    }
    Ok(content)
}

fn invoke(wire: InvokeWire) -> Result<Order, Fault> {
    let prompt = need("invoke", "prompt", wire.prompt)?;
    let agent = non_blank(wire.name).map(|name| agent_name(&name)).transpose()?;
    let model = non_blank(wire.model).map(|model| ModelRef::parse(&model)).transpose();
    Ok(Order::Invoke {
        agent: agent.map(String::from),
        prompt,
        model: model.map_err(Fault::invalid)?.map(String::from),
        wait: if wire.wait == Some(true) { Wait::ForResult } else { Wait::No },
    })
}

fn respond(wire: RespondWire) -> Result<Order, Fault> {
    let request_id = need("respond", "requestId", wire.request_id)?;
    let invalid = |error| Fault::invalid(format_args!("`requestId` names no request: {error}"));
    let request_id = InteractionId::from(request_id.parse::<Uuid>().map_err(invalid)?);
    let status = wire.status.unwrap_or(ResponseStatus::Completed);
    let result = match (non_blank(wire.message), wire.result) {
        (Some(_), Some(_)) => {
            return Err(Fault::invalid("`respond` has a `message` or a `result`, not both"));
        }
        (Some(text), None) => Value::String(text),
        (None, Some(result)) => {
            // A value in the journal must survive a round trip.
            RawJson::of(&result)
                .map_err(|error| Fault::invalid(format_args!("`result`: {error}")))?;
            result
        }
        (None, None) if status == ResponseStatus::Accepted => Value::Null,
        (None, None) => return Err(missing("respond", "message")),
    };
    Ok(Order::Respond { request_id, status, result })
}

fn cancel(wire: CancelWire) -> Result<Order, Fault> {
    let task_id = need("cancel", "taskId", wire.task_id)?;
    let invalid = |error| Fault::invalid(format_args!("`taskId` names no task: {error}"));
    Ok(Order::Cancel { task_id: TaskId::parse(&task_id).map_err(invalid)? })
}

fn agent_name(name: &str) -> Result<AgentName, Fault> {
    AgentName::parse(name)
        .map_err(|error| Fault::invalid(format_args!("`name` names no agent: {error}")))
}

fn id(value: Value) -> Result<String, Fault> {
    let id =
        value.as_str().map(str::trim).ok_or_else(|| Fault::invalid("`id` must be a string"))?;
    // Ids follow the rule for ids of other systems.
    TaskId::parse(id).map_err(|error| Fault::invalid(format_args!("`id` is wrong: {error}")))?;
    if id.len() > ID_BYTES_MAX {
        let bytes = id.len();
        return Err(Fault::invalid(format_args!(
            "`id` may have {ID_BYTES_MAX} bytes at most, this one has {bytes}"
        )));
    }
    Ok(id.to_owned())
}

fn need(action: &str, field: &str, value: Option<String>) -> Result<String, Fault> {
    non_blank(value).ok_or_else(|| missing(action, field))
}

fn non_blank(value: Option<String>) -> Option<String> {
    let text = value?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}

fn missing(action: &str, field: &str) -> Fault {
    let (action, field) = (action.to_owned(), field.to_owned());
    Fault::invalid(CommandError::MissingField { action, field })
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Fault> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        let reason = error.into_inner();
        match path.as_str() {
            "." => Fault::invalid(reason),
            path => Fault::invalid(format_args!("`{path}`: {reason}")),
        }
    })
}
