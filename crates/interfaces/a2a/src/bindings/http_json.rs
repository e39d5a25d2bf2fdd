//! The HTTP+JSON binding. A path may end with a slash.

use std::sync::Arc;

use a2a::{error_code, methods};
use antiphon_interface_transport::{AppState, Caller, read_body};
use axum::Extension;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use super::{Binding, agent_name, check_version, is_json, query};
use crate::A2a;
use crate::error::A2aError;
use crate::operations::AgentRequest;
use crate::requests::Operation;

/// Answers a request, whatever its method.
pub(crate) async fn call(
    State(state): State<Arc<AppState>>,
    Extension(a2a): Extension<A2a>,
    caller: Caller,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let whole = Request::from_parts(parts.clone(), body);
    let bytes = match read_body(whole, &state, state.deps.limits.body_bytes_max).await {
        Ok(bytes) => bytes,
        Err(error) => return error.into_response(),
    };
    let agent = match a2a.config.find(&state, &parts, agent_name(&parts)) {
        Ok(agent) => agent,
        Err(error) => return Binding::Http.error(&error),
    };
    let operation = check_version(&parts).and_then(|()| operation(&parts, &bytes));
    let request = AgentRequest { state, a2a, caller, agent, parts };
    let replied = match operation {
        Ok(operation) => request.run(operation).await,
        Err(error) => Err(error),
    };
    match replied {
        Ok(reply) => reply.into_response(Binding::Http, &request.caller).await,
        Err(error) => Binding::Http.error(&error),
    }
}

/// The operation of a request.
fn operation(parts: &Parts, body: &[u8]) -> Result<Operation, A2aError> {
    let no_route = A2aError::no_route;
    let path = parts.uri.path().trim_end_matches('/');
    let segments: Vec<String> = path.split('/').skip(3).map(decoded).collect();
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let (get, post) = (parts.method == Method::GET, parts.method == Method::POST);
    let (method, fixed) = match segments.as_slice() {
        ["message:send"] if post => (methods::SEND_MESSAGE, json!({})),
        ["message:stream"] if post => (methods::SEND_STREAMING_MESSAGE, json!({})),
        ["extendedAgentCard"] if get => (methods::GET_EXTENDED_AGENT_CARD, json!({})),
        ["tasks"] if get => (methods::LIST_TASKS, json!({})),
        ["tasks", task] => match task.rsplit_once(':') {
            Some((id, "cancel")) if post => (methods::CANCEL_TASK, json!({ "id": id })),
            Some((id, "subscribe")) if get || post => {
                (methods::SUBSCRIBE_TO_TASK, json!({ "id": id }))
            }
            Some(_) | None if get => (methods::GET_TASK, json!({ "id": task })),
            Some(_) | None => return Err(no_route()),
        },
        ["tasks", task, "pushNotificationConfigs"] if get => {
            (methods::LIST_PUSH_CONFIGS, json!({ "taskId": task }))
        }
        ["tasks", task, "pushNotificationConfigs"] if post => {
            (methods::CREATE_PUSH_CONFIG, json!({ "taskId": task }))
        }
        ["tasks", task, "pushNotificationConfigs", id] if get => {
            (methods::GET_PUSH_CONFIG, json!({ "taskId": task, "id": id }))
        }
        ["tasks", task, "pushNotificationConfigs", id] if parts.method == Method::DELETE => {
            (methods::DELETE_PUSH_CONFIG, json!({ "taskId": task, "id": id }))
        }
        _ => return Err(no_route()),
    };
    let mut params = if post { body_params(parts, body)? } else { query_params(parts)? };
    // The path names what the request is about.
    if let Value::Object(fixed) = fixed {
        params.extend(fixed);
    }
    Operation::parse(method, Value::Object(params))
}

fn decoded(segment: &str) -> String {
    // Only the path of a form is decoded here: `+` stands for itself.
    let escaped = segment.replace('+', "%2B");
    let mut pairs = url::form_urlencoded::parse(escaped.as_bytes());
    pairs.next().map(|(name, _)| name.into_owned()).unwrap_or_default()
}

fn body_params(parts: &Parts, body: &[u8]) -> Result<Map<String, Value>, A2aError> {
    if body.is_empty() {
        return Ok(Map::new());
    }
    if !is_json(&parts.headers) {
        return Err(A2aError::invalid_request("expected `content-type: application/a2a+json`"));
    }
    match serde_json::from_slice(body) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(A2aError::invalid_request("the body must be a JSON object")),
        Err(error) => {
            let message = format!("the body is not JSON: {error}");
            Err(A2aError::new(error_code::PARSE_ERROR, message))
        }
    }
}

/// Fields of the query, in the types that they have in JSON.
fn query_params(parts: &Parts) -> Result<Map<String, Value>, A2aError> {
    let mut fields = Map::new();
    for (name, text) in query(parts) {
        let value = match &*name {
            "historyLength" | "pageSize" => {
                let number: Result<i32, _> = text.parse();
                json!(number.map_err(|_| A2aError::param(&*name, "expected an integer"))?)
            }
            "includeArtifacts" => match &*text {
                "true" => Value::Bool(true),
                "false" => Value::Bool(false),
                _ => return Err(A2aError::param(&*name, "expected `true` or `false`")),
            },
            _ => Value::String(text.into_owned()),
        };
        fields.insert(name.into_owned(), value);
    }
    Ok(fields)
}
