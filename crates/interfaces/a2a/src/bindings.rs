//! The two bindings: JSON-RPC at the address of an agent, and HTTP+JSON below it.

mod http_json;
mod json_rpc;

use std::sync::Arc;

use a2a::{JsonRpcId, SVC_PARAM_VERSION, VERSION, error_code};
use antiphon_core::ErrorResponse;
use antiphon_interface_transport::openapi::{
    ApiRouter, DescribeRoute, EVENT_STREAM, Tag, TransformOperation, get_with, post_with,
};
use antiphon_interface_transport::{AppState, ErrorShape};
use axum::Extension;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderMap};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::error::A2aError;
use crate::{A2a, card};

/// Content type of HTTP+JSON.
const A2A_JSON: &str = "application/a2a+json";

/// Beginning of the paths of both bindings.
const PATHS: &str = "/a2a";

const RPC: &str = "/a2a/{agent}";
const RPC_SLASH: &str = "/a2a/{agent}/";
const BELOW: &str = "/a2a/{agent}/{*operation}";

/// Routes through which an agent's key may send messages. What it may ask for is restricted to the agent's own.
pub(crate) const AGENT_WRITABLE: [&str; 3] = [RPC, RPC_SLASH, BELOW];

/// Routes for keys that see their own work alone: each operation checks the tasks that it names.
pub(crate) const OWN_WORK: [&str; 5] = [RPC, RPC_SLASH, BELOW, card::WELL_KNOWN, card::OF_AGENT];

/// Errors of requests that reach no handler, in the shape of their binding.
pub(crate) fn error_shapes() -> Vec<ErrorShape> {
    let is_rpc = |path: &str, _: &HeaderMap| path.trim_end_matches('/').split('/').count() == 3;
    let body = |status, error: &ErrorResponse| {
        Binding::JsonRpc(JsonRpcId::Null).wrap_error(&A2aError::native(status, error))
    };
    let rpc = ErrorShape { path: PATHS, applies: is_rpc, body, request_id: None };
    let body =
        |status, error: &ErrorResponse| Binding::Http.wrap_error(&A2aError::native(status, error));
    vec![rpc, ErrorShape { path: PATHS, applies: |_, _| true, body, request_id: None }]
}

/// How a request and its response are written.
#[derive(Debug, Clone)]
pub(crate) enum Binding {
    JsonRpc(JsonRpcId),
    Http,
}

impl Binding {
    pub(crate) fn content_type(&self) -> &'static str {
        match self {
            Self::JsonRpc(_) => "application/json",
            Self::Http => A2A_JSON,
        }
    }

    pub(crate) fn wrap(&self, value: Value) -> Value {
        match self {
            Self::JsonRpc(id) => json!({ "jsonrpc": "2.0", "id": id, "result": value }),
            Self::Http => value,
        }
    }

    pub(crate) fn wrap_error(&self, error: &A2aError) -> Value {
        match self {
            Self::JsonRpc(id) => json!({ "jsonrpc": "2.0", "id": id, "error": error.json_rpc() }),
            Self::Http => error.http(),
        }
    }

    pub(crate) fn value(&self, value: Value) -> Response {
        let kind = [(CONTENT_TYPE, self.content_type())];
        (kind, self.wrap(value).to_string()).into_response()
    }

    pub(crate) fn error(&self, error: &A2aError) -> Response {
        let status = match self {
            Self::JsonRpc(_) => StatusCode::OK,
            Self::Http => error.status,
        };
        let kind = [(CONTENT_TYPE, self.content_type())];
        (status, kind, self.wrap_error(error).to_string()).into_response()
    }
}

/// All routes.
pub(crate) fn routes(a2a: A2a) -> ApiRouter<Arc<AppState>> {
    let first = get_with(card::first, |route| {
        let summary = "The card of the first exposed agent.";
        describe(route, "a2a_first_card", summary).responds(200, "application/json", "The card.")
    });
    let of_agent = get_with(card::of_agent, |route| {
        let route = describe(route, "a2a_card", "The card of an agent.");
        route.responds(200, "application/json", "The card.")
    });
    let public_key = get_with(card::public_key, |route| {
        let summary = "The public key that cards are signed with (RFC 7517).";
        let route = describe(route, "a2a_card_key", summary);
        route.responds(200, "application/jwk-set+json", "A set of JSON Web Keys.")
    });
    let rpc = |id: &'static str| {
        post_with(json_rpc::call, move |route| {
            let summary = "The JSON-RPC binding of A2A 1.0 (docs/a2a.md).";
            let route = describe(route, id, summary);
            let route = route.responds(200, "application/json", "A JSON-RPC response.");
            route.or_media_type(200, EVENT_STREAM)
        })
    };
    let get = "Reads: `tasks`, `tasks/ID`, `tasks/ID:subscribe`, push notification configurations, \
               `extendedAgentCard`.";
    let post = "Sends and changes: `message:send`, `message:stream`, `tasks/ID:cancel`, `tasks/ID:subscribe`, \
                push notification configurations.";
    let delete = "Deletes a push notification configuration.";
    let below = get_with(http_json::call, |route| http(route, "a2a_read", get))
        .post_with(http_json::call, |route| http(route, "a2a_change", post))
        .delete_with(http_json::call, |route| http(route, "a2a_delete", delete));
    ApiRouter::new()
        .api_route(card::WELL_KNOWN, first)
        .api_route(card::OF_AGENT, of_agent)
        .api_route(card::PUBLIC_KEY, public_key)
        .api_route(RPC, rpc("a2a_rpc"))
        .api_route(RPC_SLASH, rpc("a2a_rpc_slash"))
        .api_route(BELOW, below)
        .layer(Extension(a2a))
}

fn describe<'t>(route: TransformOperation<'t>, id: &str, summary: &str) -> TransformOperation<'t> {
    let route = route.describe(id, Tag::A2a, summary);
    // Of the protocol, or of the server before a request reaches it.
    [400, 401, 403, 404, 405, 409, 413, 415, 429, 500, 503].into_iter().fold(
        route,
        |route, status| {
            let route = route.responds(status, A2A_JSON, "An error.");
            route.or_media_type(status, "application/json")
        },
    )
}

fn http<'t>(route: TransformOperation<'t>, id: &str, summary: &str) -> TransformOperation<'t> {
    let summary = format!("The HTTP+JSON binding of A2A 1.0 (docs/a2a.md). {summary}");
    let route = describe(route, id, &summary);
    route.responds(200, A2A_JSON, "The response.").or_media_type(200, EVENT_STREAM)
}

/// The name of the agent in a path.
pub(crate) fn agent_name(parts: &Parts) -> &str {
    parts.uri.path().split('/').nth(2).unwrap_or_default()
}

/// Refuses a request of another version. Without one it is a request of version 0.3.
fn check_version(parts: &Parts) -> Result<(), A2aError> {
    let header = parts.headers.get(SVC_PARAM_VERSION).map(|version| version.to_str());
    let version = match header {
        Some(version) => version.unwrap_or("?").to_owned(),
        None => query(parts)
            .find_map(|(name, value)| {
                name.eq_ignore_ascii_case(SVC_PARAM_VERSION).then(|| value.into_owned())
            })
            .unwrap_or_default(),
    };
    let version = version.trim();
    let version = if version.is_empty() { "0.3" } else { version };
    let is_patch =
        |rest: &str| rest.strip_prefix('.').is_some_and(|patch| patch.parse::<u32>().is_ok());
    match version.strip_prefix(VERSION) {
        Some(rest) if rest.is_empty() || is_patch(rest) => Ok(()),
        Some(_) | None => {
            let version: String = version.chars().take(20).collect();
            let message = format!(
                "this agent speaks A2A {VERSION}, not `{version}`: send `{SVC_PARAM_VERSION}: {VERSION}`"
            );
            Err(A2aError::new(error_code::VERSION_NOT_SUPPORTED, message))
        }
    }
}

fn query(parts: &Parts) -> url::form_urlencoded::Parse<'_> {
    url::form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes())
}

/// Whether a body is JSON.
fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json") || kind.eq_ignore_ascii_case(A2A_JSON)
}
