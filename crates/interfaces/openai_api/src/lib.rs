//! `POST /v1/chat/completions` and `GET /v1/models`: OpenAI's API, and canonical chat messages.
//!
//! Every request becomes a task of its own in the journal. `model` names an agent, which works with its own
//! tools, or a `PROVIDER/MODEL`, which answers without an agent. The client runs the tools that it offers: a
//! completion that calls them ends the task, and the next request carries the whole conversation again. A
//! field that cannot be honored is refused, in the shape of the request.

mod answer_watcher;
mod canonical_messages;
mod chat_error;
mod chat_request;
mod chat_task;
mod completion_json;
mod conversation;
mod models;
mod openai_messages;
mod reply;
mod schema;

use std::sync::Arc;

use antiphon_core::port::{Clock, IdempotencyKey, SystemClock};
use antiphon_interface_transport::openapi::{ApiRouter, DescribeRoute, Tag, get_with, post_with};
use antiphon_interface_transport::{AppState, Caller, Interface, Json, idempotency};
use antiphon_runtime::{AcceptedTask, NewTask};
use axum::extract::{FromRequest, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::json_schema;

use crate::answer_watcher::AnswerWatcher;
use crate::chat_error::{ChatError, Shape};
use crate::chat_request::{ChatRequest, Fields};
use crate::completion_json::CompletionHeader;
use crate::reply::Reply;
use crate::schema::{ChatAnswer, Model, Models, with_errors, with_stream};

const ROUTE: &str = "/v1/chat/completions";

const TASK: HeaderName = HeaderName::from_static("x-antiphon-task");

const CONTINUE: HeaderName = HeaderName::from_static("x-antiphon-continue");

/// The routes of chat completions and models.
pub fn interface() -> Interface {
    Interface { agent_writable: vec![ROUTE], ..Interface::new(routes) }
}

fn routes() -> ApiRouter<Arc<AppState>> {
    let completions = post_with(completions, |route| {
        let route = route.describe("chat", Tag::Chat, "A chat completion, whole or streamed.");
        let route = route.description(
            "A request whose messages have `id` and `timestamp` is answered in canonical form, any other in \
             OpenAI's. With `stream` the response is server-sent events.",
        );
        let route = route.input::<Json<schema::ChatRequest>>();
        let route = with_stream(route.response::<200, axum::Json<ChatAnswer>>());
        let continues = "`true`: the task continues when the client disconnects; `false`: it is canceled. \
                         Defaults to `true` with an `Idempotency-Key`, else to `false`.";
        let route = route.with_idempotency_key().header(
            "X-Antiphon-Continue",
            continues,
            json_schema!({ "type": "boolean" }),
        );
        with_errors(route, &[400, 403, 404, 408, 409, 410, 413, 415, 422, 429, 500, 502, 503])
    });
    let list = get_with(models::list, |route| {
        let summary = "Lists the agents and models that a completion can name.";
        let route = route.describe("list_models", Tag::Chat, summary);
        route.response::<200, axum::Json<Models>>()
    });
    let show = get_with(models::show, |route| {
        let route = route.describe("show_model", Tag::Chat, "An agent or a model.");
        with_errors(route.response::<200, axum::Json<Model>>(), &[404])
    });
    ApiRouter::new()
        .api_route(ROUTE, completions)
        .api_route("/v1/models", list)
        .api_route("/v1/models/{*id}", show)
}

async fn completions(
    State(state): State<Arc<AppState>>,
    caller: Caller,
    request: Request,
) -> Response {
    let headers = request.headers().clone();
    let fields = match Json::<Fields>::from_request(request, &state).await {
        Ok(Json(fields)) => fields,
        // A body without fields shows no shape: the error is native.
        Err(error) => return error.into_response(),
    };
    let shape = chat_request::shape(&fields, &headers);
    match create(state, &caller, &headers, &fields, shape).await {
        Err(error) => error.into_response(shape),
        Ok((reply, stream)) => {
            let task_id = HeaderValue::from_str(reply.header.task_id.as_str());
            let mut response =
                if stream { reply.streamed(&caller).await } else { reply.whole().await };
            if let Ok(task_id) = task_id {
                response.headers_mut().insert(TASK, task_id);
            }
            response
        }
    }
}

/// Creates the task of a request. The task is durable when this returns.
async fn create(
    state: Arc<AppState>,
    caller: &Caller,
    headers: &HeaderMap,
    fields: &Fields,
    shape: Shape,
) -> Result<(Reply, bool), ChatError> {
    let request = ChatRequest::read(fields, shape)?;
    let (key, continues) = continuation(caller, headers).await?;
    let target =
        chat_task::target(request.model.as_deref(), &state.deps.task_factory.agents(), shape)?;
    let (stream, include_usage) = (request.stream, request.include_usage);
    let requested_model = request.model.clone();
    let task = chat_task::task(&state, caller, target, request).await?;
    let model = requested_model.unwrap_or_else(|| task.model.to_string());
    let orchestrator = state.deps.orchestrator.clone();
    let payer = caller.payer();
    if let Err(error) = orchestrator.check_budget(payer.as_deref(), key.as_ref()).await {
        return Err(ChatError::of(error).await);
    }
    let provenance = caller.principal().provenance();
    let task = NewTask { key, payer, provenance, ..task };
    let (accepted, mut attached) = match orchestrator.invoke_attached(task).await {
        Ok(accepted) => accepted,
        Err(error) => return Err(ChatError::of(error).await),
    };
    let (follower, deltas) = (attached.take_follower(), attached.take_deltas());
    let attached = if continues {
        attached.detach();
        None
    } else {
        Some(attached)
    };
    // Only a new task joins the trace of its request.
    let AcceptedTask { task_id, deduplicated } = accepted;
    if !deduplicated {
        state.trace(headers, &task_id);
    }
    let watcher = AnswerWatcher::new(&orchestrator, task_id.clone(), follower, deltas);
    let header = CompletionHeader { task_id, created: SystemClock.now().timestamp(), model };
    let text = String::new();
    Ok((Reply { state, shape, header, include_usage, watcher, attached, text }, stream))
}

/// The idempotency key of a request, and whether its task continues without the client. A client that sends
/// a key means to come back.
async fn continuation(
    caller: &Caller,
    headers: &HeaderMap,
) -> Result<(Option<IdempotencyKey>, bool), ChatError> {
    let key = match idempotency::key(caller, "chat", headers) {
        Ok(key) => key,
        Err(error) => return Err(ChatError::native(error).await),
    };
    let continues = match headers.get(CONTINUE).map(HeaderValue::as_bytes) {
        None => key.is_some(),
        Some(b"true") => true,
        Some(b"false") => false,
        Some(_) => {
            let message = "`X-Antiphon-Continue` must be `true` or `false`";
            return Err(ChatError::new(StatusCode::BAD_REQUEST, message));
        }
    };
    Ok((key, continues))
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
