//! Operations with their parameters, as both bindings give them.

use a2a::{
    CancelTaskRequest, DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest, GetTaskRequest, ListTaskPushNotificationConfigsRequest,
    ListTasksRequest, SendMessageRequest, SubscribeToTaskRequest, TaskPushNotificationConfig,
    error_code, methods,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::A2aError;

/// Parts of one message, at most.
const PARTS_MAX: usize = 256;

/// Fields of a part of which it has exactly one.
const CONTENTS: [&str; 4] = ["text", "raw", "url", "data"];

/// An operation.
#[derive(Debug)]
pub(crate) enum Operation {
    Send(Box<SendMessageRequest>),
    Stream(Box<SendMessageRequest>),
    Get(GetTaskRequest),
    List(ListTasksRequest),
    Cancel(CancelTaskRequest),
    Subscribe(SubscribeToTaskRequest),
    CreatePush(TaskPushNotificationConfig),
    GetPush(GetTaskPushNotificationConfigRequest),
    ListPush(ListTaskPushNotificationConfigsRequest),
    DeletePush(DeleteTaskPushNotificationConfigRequest),
    ExtendedCard,
}

impl Operation {
    /// The operation of a method with these parameters.
    pub(crate) fn parse(method: &str, params: Value) -> Result<Self, A2aError> {
        if !methods::is_valid(method) {
            let message =
                format!("there is no method `{method}`: this is A2A 1.0, as `SendMessage`");
            return Err(A2aError::new(error_code::METHOD_NOT_FOUND, message));
        }
        let params = match params {
            Value::Null => Map::new(),
            Value::Object(params) => params,
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Err(A2aError::param("params", "expected an object"));
            }
        };
        if params.get("tenant").and_then(Value::as_str).is_some_and(|tenant| !tenant.is_empty()) {
            return Err(A2aError::param("tenant", "this server has no tenants: omit it"));
        }
        Ok(match method {
            methods::SEND_MESSAGE => Self::Send(Box::new(send_request(params)?)),
            methods::SEND_STREAMING_MESSAGE => Self::Stream(Box::new(send_request(params)?)),
            methods::GET_TASK => Self::Get(parse(params)?),
            methods::LIST_TASKS => Self::List(parse(params)?),
            methods::CANCEL_TASK => Self::Cancel(parse(params)?),
            methods::SUBSCRIBE_TO_TASK => Self::Subscribe(parse(params)?),
            methods::CREATE_PUSH_CONFIG => Self::CreatePush(parse(params)?),
            methods::GET_PUSH_CONFIG => Self::GetPush(parse(params)?),
            methods::LIST_PUSH_CONFIGS => Self::ListPush(parse(params)?),
            methods::DELETE_PUSH_CONFIG => Self::DeletePush(parse(params)?),
            _ => Self::ExtendedCard,
        })
    }
}

fn parse<T: DeserializeOwned>(params: Map<String, Value>) -> Result<T, A2aError> {
    // In `ProtoJSON`, `null` is the same as an absent field.
    let given = params.into_iter().filter(|(_, value)| !value.is_null()).collect();
    serde_path_to_error::deserialize(Value::Object(given)).map_err(|error| {
        let path = error.path().to_string();
        let field = if path == "." { "params".to_owned() } else { path };
        A2aError::param(field, error.into_inner())
    })
}

fn send_request(mut params: Map<String, Value>) -> Result<SendMessageRequest, A2aError> {
    let message = params.get_mut("message").and_then(Value::as_object_mut);
    let message = message.ok_or_else(|| A2aError::param("message", "it is missing"))?;
    message.retain(|_, value| !value.is_null());
    let parts = message.get("parts").and_then(Value::as_array);
    let parts = parts.ok_or_else(|| A2aError::param("message.parts", "it is missing"))?;
    if parts.is_empty() || parts.len() > PARTS_MAX {
        let reason = format!("a message has 1 to {PARTS_MAX} parts");
        return Err(A2aError::param("message.parts", reason));
    }
    for (index, part) in parts.iter().enumerate() {
        let has = |name: &&&str| part.get(**name).is_some_and(|content| !content.is_null());
        if CONTENTS.iter().filter(has).count() != 1 {
            let reason = "a part has exactly one of `text`, `raw`, `url` and `data`";
            return Err(A2aError::param(format!("message.parts[{index}]"), reason));
        }
    }
    parse(params)
}
