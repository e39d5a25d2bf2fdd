//! Responses: created whole, streamed or in the background; shown, continued and canceled by their ids.

mod client_tools;
mod conversation_locks;
mod input_items;
mod response_format;
mod response_request;
mod stored_response;

use std::sync::Arc;

use antiphon_core::port::{Clock, IdSource, RandomIds, SystemClock};
use antiphon_core::{RawJson, SessionId};
use antiphon_interface_transport::answer::{
    self, AnswerAgents, AnswerError, AnswerReply, Continuation, MissingModel, StartedAnswer,
};
use antiphon_interface_transport::openapi::{ApiRouter, DescribeRoute, Tag, get_with, post_with};
use antiphon_interface_transport::{AppState, Caller, Json};
use antiphon_runtime::OrchestratorError;
use axum::extract::{FromRequest, Path, Request, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::RESPONSES;
use crate::chat::chat_request::{Fields, field};
use crate::chat::schema::{with_errors, with_stream};
use crate::openai_error::{self, Shape};
use crate::responses::conversation_locks::ConversationLocks;
use crate::responses::response_format::{ResponseFormat, ResponseHeader};
use crate::responses::response_request::{Continues, ResponseRequest};
use crate::responses::stored_response::{CONVERSATION, Previous, RESPONSE, UNSTORED};

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let locks = ConversationLocks::default();
    let create =
        move |state, caller, agents, request| create(locks.clone(), state, caller, agents, request);
    let create = post_with(create, |route| {
        let summary = "A response, whole, streamed or in the background.";
        let route = route.describe("create_response", Tag::Chat, summary);
        let route = route.description("The body is that of OpenAI's API: see docs/responses.md.");
        let route = route.input::<Json<RawJson>>().response::<200, axum::Json<RawJson>>();
        let route = with_stream(route).with_idempotency_key();
        with_errors(route, &[400, 403, 404, 408, 409, 410, 413, 415, 422, 429, 500, 502, 503])
    });
    let show = get_with(show, |route| {
        let route = route.describe("show_response", Tag::Chat, "A response as it is now.");
        with_errors(route.response::<200, axum::Json<RawJson>>(), &[404, 500, 503])
    });
    let cancel = post_with(cancel, |route| {
        let route = route.describe("cancel_response", Tag::Chat, "Cancels a response.");
        with_errors(route.response::<200, axum::Json<RawJson>>(), &[404, 500, 503])
    });
    let items = get_with(input_items, |route| {
        let summary = "The items that the request of a response brought.";
        let route = route.describe("list_response_items", Tag::Chat, summary);
        with_errors(route.response::<200, axum::Json<RawJson>>(), &[404, 500, 503])
    });
    let conversation = post_with(new_conversation, |route| {
        let summary = "An id of a new conversation, for `conversation` of responses.";
        let route = route.describe("create_conversation", Tag::Chat, summary);
        let route = route.input::<Json<RawJson>>().response::<200, axum::Json<RawJson>>();
        with_errors(route, &[400, 408, 413, 415])
    });
    ApiRouter::new()
        .api_route(RESPONSES, create)
        .api_route("/v1/responses/{id}", show)
        .api_route("/v1/responses/{id}/cancel", cancel)
        .api_route("/v1/responses/{id}/input_items", items)
        .api_route("/v1/conversations", conversation)
}

fn refuse(error: &AnswerError) -> Response {
    error.respond(openai_error::body(error, Shape::OpenAi))
}

async fn create(
    locks: ConversationLocks,
    State(state): State<Arc<AppState>>,
    caller: Caller,
    agents: AnswerAgents,
    request: Request,
) -> Response {
    let headers = request.headers().clone();
    let fields = match Json::<Fields>::from_request(request, &state).await {
        Ok(Json(fields)) => fields,
        Err(error) => return error.into_response(),
    };
    match start(&locks, state, (&caller, &agents), &headers, &fields).await {
        Err(error) => refuse(&error),
        Ok(Started { reply, way }) => {
            let task_id = reply.format.header.task_id.clone();
            let response = match way {
                ResponseDelivery::Whole => reply.whole().await,
                ResponseDelivery::Streamed => reply.streamed(&caller).await,
                ResponseDelivery::Background => {
                    let mut body = reply.format.header.body("queued", json!([]));
                    body["background"] = json!(true);
                    axum::Json(body).into_response()
                }
            };
            crate::with_task(response, &task_id)
        }
    }
}

enum ResponseDelivery {
    Whole,
    Streamed,
    Background,
}

struct Started {
    reply: AnswerReply<ResponseFormat>,
    way: ResponseDelivery,
}

/// Creates the task of a request. The task is durable when this returns.
async fn start(
    locks: &ConversationLocks,
    state: Arc<AppState>,
    (caller, agents): (&Caller, &AnswerAgents),
    headers: &HeaderMap,
    fields: &Fields,
) -> Result<Started, AnswerError> {
    let request = ResponseRequest::read(fields)?;
    let mut continuation = Continuation::of(caller, "responses", headers).await?;
    continuation.continues |= request.background;
    let found = stored_response::previous(&state, caller, &request.continues, locks).await?;
    let Previous { conversation: previous, open, lock } = found;
    continuation.lock = lock;
    let mut wanted = request.answer(fields, open)?;
    wanted.previous = previous;
    let model = wanted.model.as_deref();
    let target = answer::target(&*state.deps.task_factory, agents, model, MissingModel::Refused)?;
    let started =
        StartedAnswer::create(&state, caller, headers, target, wanted, continuation).await?;
    let StartedAnswer { task_id, created_at, watcher, attached, .. } = started;
    let ResponseRequest { continues, store, stream, background, tools, mut echoed } = request;
    if let Continues::Conversation(id) = &continues {
        echoed["conversation"] = json!({ "id": id });
    }
    let prefix = if store { RESPONSE } else { UNSTORED };
    let header = ResponseHeader {
        id: format!("{prefix}{task_id}"),
        task_id,
        created: created_at.timestamp(),
        echoed,
    };
    let format = ResponseFormat::new(header, tools);
    let way = match (stream, background) {
        (true, _) => ResponseDelivery::Streamed,
        (false, true) => ResponseDelivery::Background,
        (false, false) => ResponseDelivery::Whole,
    };
    Ok(Started { reply: AnswerReply { state, format, watcher, attached }, way })
}

async fn show(
    State(state): State<Arc<AppState>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Response {
    match stored_response::find(&state, &caller, "id", &id).await {
        Ok(task) => axum::Json(stored_response::show(&state, &task).await).into_response(),
        Err(error) => refuse(&error),
    }
}

async fn input_items(
    State(state): State<Arc<AppState>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Response {
    match stored_response::find(&state, &caller, "id", &id).await {
        Ok(task) => axum::Json(stored_response::items(&task)).into_response(),
        Err(error) => refuse(&error),
    }
}

async fn cancel(
    State(state): State<Arc<AppState>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Response {
    match canceled(&state, &caller, &id).await {
        Ok(body) => axum::Json(body).into_response(),
        Err(error) => refuse(&error),
    }
}

/// Cancels a response. One that has ended is unchanged.
async fn canceled(state: &Arc<AppState>, caller: &Caller, id: &str) -> Result<Value, AnswerError> {
    let task = stored_response::find(state, caller, "id", id).await?;
    match state.deps.orchestrator.cancel(&task.task_id).await {
        Ok(()) | Err(OrchestratorError::Ended { .. }) => {}
        Err(error) => return Err(AnswerError::native(error).await),
    }
    let task = stored_response::find(state, caller, "id", id).await?;
    Ok(stored_response::show(state, &task).await)
}

async fn new_conversation(State(state): State<Arc<AppState>>, request: Request) -> Response {
    let fields = match Json::<Fields>::from_request(request, &state).await {
        Ok(Json(fields)) => fields,
        Err(error) => return error.into_response(),
    };
    let items = field::<Vec<Value>>(&fields, "items");
    match items {
        Ok(None) => {}
        Ok(Some(items)) if items.is_empty() => {}
        Ok(Some(_)) => return refuse(&openai_error::unsupported("items")),
        Err(error) => return refuse(&error),
    }
    let id = SessionId::from(RandomIds.next());
    let created = SystemClock.now().timestamp();
    axum::Json(json!({
        "id": format!("{CONVERSATION}{id}"), "object": "conversation", "created_at": created,
        "metadata": {},
    }))
    .into_response()
}
