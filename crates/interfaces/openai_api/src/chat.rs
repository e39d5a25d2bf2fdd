//! Chat completions: whole or streamed, in OpenAI's shape or with canonical messages. `transport/answer` makes a task of each.

pub(crate) mod canonical_messages;
mod chat_format;
pub(crate) mod chat_request;
pub(crate) mod completion_json;
pub(crate) mod openai_messages;
pub(crate) mod schema;

use std::sync::Arc;

use antiphon_interface_transport::answer::{
    self, AnswerAgents, AnswerError, AnswerReply, Continuation, MissingModel, StartedAnswer,
};
use antiphon_interface_transport::{AppState, Caller, Json};
use axum::extract::{FromRequest, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::chat::chat_format::ChatFormat;
use crate::chat::chat_request::{ChatRequest, Fields};
use crate::chat::completion_json::CompletionHeader;
use crate::openai_error::{self, Shape};

pub(crate) async fn completions(
    State(state): State<Arc<AppState>>,
    caller: Caller,
    agents: AnswerAgents,
    request: Request,
) -> Response {
    let headers = request.headers().clone();
    let fields = match Json::<Fields>::from_request(request, &state).await {
        Ok(Json(fields)) => fields,
        // Nothing in a body without fields is OpenAI's.
        Err(error)
            if error.status() == StatusCode::BAD_REQUEST
                && !chat_request::is_of_library(&headers) =>
        {
            return (error.status(), axum::Json(error.body())).into_response();
        }
        Err(error) => return error.into_response(),
    };
    let shape = chat_request::shape(&fields, &headers);
    match create(state, (&caller, &agents), &headers, &fields, shape).await {
        Err(error) => error.respond(openai_error::body(&error, shape)),
        Ok((reply, stream)) => {
            let task_id = reply.format.header.task_id.clone();
            let response = if stream { reply.streamed(&caller).await } else { reply.whole().await };
            crate::with_task(response, &task_id)
        }
    }
}

/// Creates the task of a request. The task is durable when this returns.
async fn create(
    state: Arc<AppState>,
    (caller, agents): (&Caller, &AnswerAgents),
    headers: &HeaderMap,
    fields: &Fields,
    shape: Shape,
) -> Result<(AnswerReply<ChatFormat>, bool), AnswerError> {
    let ChatRequest { answer: request, stream, include_usage } = ChatRequest::read(fields, shape)?;
    let continuation = Continuation::of(caller, "chat", headers).await?;
    let missing = match shape {
        Shape::Canonical => MissingModel::Default,
        Shape::OpenAi => MissingModel::Refused,
    };
    let named = request.model.as_deref();
    let target = answer::target(&*state.deps.task_factory, agents, named, missing)?;
    let model = request.model.clone();
    let started =
        StartedAnswer::create(&state, caller, headers, target, request, continuation).await?;
    let StartedAnswer { task_id, created_at, model: answering, watcher, attached } = started;
    let model = model.unwrap_or_else(|| answering.to_string());
    let header = CompletionHeader { task_id, created: created_at.timestamp(), model };
    let format = ChatFormat { shape, header, include_usage, text: String::new() };
    Ok((AnswerReply { state, format, watcher, attached }, stream))
}
