//! The JSON-RPC binding: one request at a time. Errors have status 200, as JSON-RPC has them in its own body.

use std::sync::Arc;

use a2a::{JsonRpcId, error_code};
use antiphon_interface_transport::{AppState, Caller, read_body};
use axum::Extension;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::Value;

use super::{Binding, agent_name, check_version, is_json};
use crate::A2a;
use crate::error::A2aError;
use crate::operations::AgentRequest;
use crate::requests::Operation;

/// `POST /a2a/{agent}`.
pub(crate) async fn call(
    State(state): State<Arc<AppState>>,
    Extension(a2a): Extension<A2a>,
    caller: Caller,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let agent = match a2a.config.find(&state, &parts, agent_name(&parts)) {
        Ok(agent) => agent,
        Err(error) => return Binding::Http.error(&error),
    };
    let whole = Request::from_parts(parts.clone(), body);
    let bytes = match read_body(whole, &state, state.deps.limits.body_bytes_max).await {
        Ok(bytes) => bytes,
        Err(error) => return error.into_response(),
    };
    let binding = Binding::JsonRpc(JsonRpcId::Null);
    if !is_json(&parts.headers) {
        let message = "expected a JSON body with `content-type: application/json`";
        return binding.error(&A2aError::invalid_request(message));
    }
    let Envelope { id, method, params } = match Envelope::parse(&bytes) {
        Ok(envelope) => envelope,
        Err((id, error)) => return Binding::JsonRpc(id).error(&error),
    };
    let binding = Binding::JsonRpc(id);
    let operation = check_version(&parts).and_then(|()| Operation::parse(&method, params));
    let request = AgentRequest { state, a2a, caller, agent, parts };
    let replied = match operation {
        Ok(operation) => request.run(operation).await,
        Err(error) => Err(error),
    };
    match replied {
        Ok(reply) => reply.into_response(binding, &request.caller).await,
        Err(error) => binding.error(&error),
    }
}

/// A JSON-RPC request.
struct Envelope {
    id: JsonRpcId,
    method: String,
    params: Value,
}

impl Envelope {
    /// The error has the id of the request, if that can be read.
    fn parse(bytes: &[u8]) -> Result<Self, (JsonRpcId, A2aError)> {
        let invalid = |id, message: &str| (id, A2aError::invalid_request(message));
        let json: Value = serde_json::from_slice(bytes).map_err(|error| {
            let message = format!("the body is not JSON: {error}");
            (JsonRpcId::Null, A2aError::new(error_code::PARSE_ERROR, message))
        })?;
        let Value::Object(mut fields) = json else {
            return Err(invalid(
                JsonRpcId::Null,
                "expected one request object: batches are not supported",
            ));
        };
        let Some(id) = fields.get("id").and_then(|id| JsonRpcId::deserialize(id).ok()) else {
            return Err(invalid(JsonRpcId::Null, "`id` must be a string or an integer"));
        };
        if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Err(invalid(id, "`jsonrpc` must be \"2.0\""));
        }
        match (fields.remove("method"), fields.remove("params")) {
            (Some(Value::String(method)), params) => {
                Ok(Self { id, method, params: params.unwrap_or(Value::Null) })
            }
            (_, _) => Err(invalid(id, "`method` must be a string")),
        }
    }
}
