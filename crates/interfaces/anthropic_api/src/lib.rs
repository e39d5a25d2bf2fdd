//! Anthropic's API: `POST /v1/messages`, `POST /v1/messages/count_tokens`, and models for its clients.
//!
//! Every request becomes a task of its own in the journal, as with OpenAI's API: `model` names an agent, a
//! `PROVIDER/MODEL` or an alias, and the client runs the tools that it offers. A field that cannot be honored is refused.

mod anthropic_error;
mod message_format;
mod message_request;
mod models;
mod turns;

use std::sync::Arc;

use antiphon_core::RawJson;
use antiphon_core::TaskId;
use antiphon_interface_transport::answer::{
    self, AnswerAgents, AnswerError, AnswerReply, Continuation, MissingModel, StartedAnswer,
};
use antiphon_interface_transport::openapi::{
    ApiRouter, DescribeRoute, Tag, TransformOperation, post_with,
};
use antiphon_interface_transport::{AppState, Caller, ErrorShape, Interface, Json, OwnWork};
use axum::extract::{FromRequest, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::message_format::MessageFormat;
use crate::message_request::MessageRequest;
pub use crate::models::models;

const MESSAGES: &str = "/v1/messages";

const COUNT_TOKENS: &str = "/v1/messages/count_tokens";

/// Routes for keys that see their own work alone: none names any work.
const OWN_WORK: [&str; 2] = [MESSAGES, COUNT_TOKENS];

const TASK: HeaderName = HeaderName::from_static("x-antiphon-task");

/// The routes of messages. Models are on a route of OpenAI's API: give it [`models()`].
pub fn interface() -> Interface {
    let shape = |path, applies| ErrorShape {
        path,
        applies,
        body: anthropic_error::reshape,
        request_id: Some("request-id"),
    };
    Interface {
        agent_writable: vec![MESSAGES],
        own_work: OWN_WORK.map(|route| (route, OwnWork::Handler)).into(),
        error_shapes: vec![
            shape(MESSAGES, |_, _| true),
            shape("/v1/models", |_, headers| models::is_for(headers)),
        ],
        ..Interface::new(routes)
    }
}

fn routes() -> ApiRouter<Arc<AppState>> {
    let create = post_with(create, |route| {
        let route = route.describe("create_message", Tag::Chat, "A message, whole or streamed.");
        let route =
            route.description("The body is that of Anthropic's API: see docs/anthropic.md.");
        let route = route.input::<Json<RawJson>>().response::<200, axum::Json<RawJson>>();
        with_errors(route).with_idempotency_key()
    });
    let count = post_with(count_tokens, |route| {
        let summary = "An estimate of the tokens of a message request.";
        let route = route.describe("count_tokens", Tag::Chat, summary);
        with_errors(route.input::<Json<RawJson>>().response::<200, axum::Json<RawJson>>())
    });
    ApiRouter::new().api_route(MESSAGES, create).api_route(COUNT_TOKENS, count)
}

/// Describes the errors, which have Anthropic's shape.
fn with_errors(route: TransformOperation<'_>) -> TransformOperation<'_> {
    let statuses = [400, 401, 403, 404, 408, 409, 410, 413, 415, 422, 429, 500, 502, 503];
    statuses.into_iter().fold(route, |route, status| {
        route.responds(status, "application/json", "An error in Anthropic's shape.")
    })
}

fn refuse(error: &AnswerError) -> Response {
    error.respond(anthropic_error::body(error))
}

async fn create(
    State(state): State<Arc<AppState>>,
    caller: Caller,
    agents: AnswerAgents,
    request: Request,
) -> Response {
    let headers = request.headers().clone();
    let body = match Json::<serde_json::Value>::from_request(request, &state).await {
        Ok(Json(body)) => body,
        Err(error) => return error.into_response(),
    };
    match start(state, (&caller, &agents), &headers, &body).await {
        Err(error) => refuse(&error),
        Ok((reply, stream)) => {
            let task_id = reply.format.task_id.clone();
            let response = if stream { reply.streamed(&caller).await } else { reply.whole().await };
            with_task(response, &task_id)
        }
    }
}

/// Creates the task of a request. The task is durable when this returns.
async fn start(
    state: Arc<AppState>,
    (caller, agents): (&Caller, &AnswerAgents),
    headers: &HeaderMap,
    body: &serde_json::Value,
) -> Result<(AnswerReply<MessageFormat>, bool), AnswerError> {
    let MessageRequest { answer: request, stream } = MessageRequest::read(body)?;
    let continuation = Continuation::of(caller, "messages", headers).await?;
    let model = request.model.clone().unwrap_or_default();
    let named = request.model.as_deref();
    let target = answer::target(&*state.deps.task_factory, agents, named, MissingModel::Refused)?;
    let started =
        StartedAnswer::create(&state, caller, headers, target, request, continuation).await?;
    let StartedAnswer { task_id, watcher, attached, .. } = started;
    let format = MessageFormat::new(task_id, model);
    Ok((AnswerReply { state, format, watcher, attached }, stream))
}

/// An estimate: no provider is asked.
async fn count_tokens(State(state): State<Arc<AppState>>, request: Request) -> Response {
    let body = match Json::<serde_json::Value>::from_request(request, &state).await {
        Ok(Json(body)) => body,
        Err(error) => return error.into_response(),
    };
    match MessageRequest::read(&body) {
        Err(error) => refuse(&error),
        Ok(_) => {
            axum::Json(json!({ "input_tokens": message_request::estimate(&body) })).into_response()
        }
    }
}

fn with_task(mut response: Response, task_id: &TaskId) -> Response {
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(task_id.as_str()) {
        headers.insert(TASK, id);
    }
    response
}

#[cfg(test)]
mod tests {
    use antiphon_interface_transport::openapi::undescribed_paths;

    use super::*;

    #[test]
    fn every_route_is_in_the_document() {
        assert_eq!(undescribed_paths(interface()), Vec::<String>::new());
    }
}
