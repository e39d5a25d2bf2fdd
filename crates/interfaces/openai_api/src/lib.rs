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
mod completion_json;
mod conversation;
mod models;
mod openai_messages;
mod reply;
mod schema;

use std::num::NonZeroU32;
use std::sync::Arc;

use antiphon_core::port::{Clock, IdempotencyKey, SystemClock};
use antiphon_core::{
    AgentName, CallableAgents, Message, ModelOptions, ModelRef, TaskId, TaskLimits, ToolChoice,
    UserMessage,
};
use antiphon_interface_transport::openapi::{ApiRouter, DescribeRoute, Tag, get_with, post_with};
use antiphon_interface_transport::{ApiError, AppState, Caller, Interface, Json, idempotency};
use antiphon_project::{TaskRequest, check_start_allowed, labeled, restrict_to_agent};
use antiphon_runtime::{NewTask, PriorHistory};
use axum::extract::{FromRequest, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use schemars::json_schema;

use crate::answer_watcher::AnswerWatcher;
use crate::chat_error::{ChatError, Shape};
use crate::chat_request::{ChatRequest, Fields};
use crate::completion_json::CompletionHeader;
use crate::conversation::Conversation;
use crate::reply::Reply;
use crate::schema::{ChatAnswer, Model, Models, with_errors, with_stream};

/// Turns of a plain model for one request, at most. It takes more than one to correct an invalid output.
const PLAIN_TURNS_MAX: NonZeroU32 = NonZeroU32::new(8).unwrap();

/// Agent name of requests to a plain model, in the journal.
const PLAIN: &str = "chat";

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
        with_errors(route, &[400, 404, 408, 409, 410, 413, 415, 422, 429, 500, 502, 503])
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
        Err(error) => return ChatError::native(error).await.into_response(Shape::OpenAi),
    };
    let shape = chat_request::shape(&fields);
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
    let target = target(request.model.as_deref(), &state.deps.task_factory.agents(), shape)?;
    let (stream, include_usage) = (request.stream, request.include_usage);
    let requested_model = request.model.clone();
    let task = task(&state, caller, target, request).await?;
    let model = requested_model.unwrap_or_else(|| task.model.to_string());
    let orchestrator = state.deps.orchestrator.clone();
    let payer = caller.payer();
    if let Err(error) = orchestrator.check_budget(payer.as_deref(), key.as_ref()).await {
        return Err(ChatError::of(error).await);
    }
    let task = NewTask { key, payer, ..task };
    let before = match task.key {
        None => None,
        Some(_) => match orchestrator.head().await {
            Ok(head) => Some(head),
            Err(error) => return Err(ChatError::native(error).await),
        },
    };
    let accepted = orchestrator.invoke_attached(task).await;
    let (task_id, mut attached): (TaskId, _) = match accepted {
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
    if matches!(state.existed(&task_id, before).await, Ok(false)) {
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

/// What `model` names.
enum ChatTarget {
    Agent(AgentName),
    /// A model without an agent; the default model when absent.
    Plain(Option<ModelRef>),
}

fn target(
    model: Option<&str>,
    agents: &[AgentName],
    shape: Shape,
) -> Result<ChatTarget, ChatError> {
    let Some(model) = model else {
        return match shape {
            Shape::Canonical => Ok(ChatTarget::Plain(None)),
            Shape::OpenAi => {
                let message = "name an agent or a PROVIDER/MODEL: see /v1/models";
                Err(ChatError::field("model", message))
            }
        };
    };
    if let Some(agent) = agents.iter().find(|agent| agent.as_str() == model) {
        return Ok(ChatTarget::Agent(agent.clone()));
    }
    let parsed = ModelRef::parse(model).map(|model| ChatTarget::Plain(Some(model)));
    parsed.map_err(|_| model_not_found(model))
}

fn model_not_found(model: &str) -> ChatError {
    let message = format!("`{model}` is neither an agent nor a PROVIDER/MODEL: see /v1/models");
    let error = ChatError::field("model", message).coded("model_not_found");
    ChatError { status: StatusCode::NOT_FOUND, ..error }
}

/// The task of a chat request.
async fn task(
    state: &AppState,
    caller: &Caller,
    target: ChatTarget,
    mut chat: ChatRequest,
) -> Result<NewTask, ChatError> {
    if let ChatTarget::Agent(name) = &target {
        match chat.tool_choice {
            ToolChoice::Auto => {}
            // The agent has tools of its own, which it may still use.
            ToolChoice::None => chat.tools.clear(),
            ToolChoice::Required | ToolChoice::Named(_) => {
                let message =
                    format!("agent `{name}` chooses its tools itself: use `auto` or `none`");
                return Err(ChatError::field("tool_choice", message));
            }
        }
        chat.tool_choice = ToolChoice::Auto;
        chat.conversation = restrict_conversation(caller, chat.conversation).await?;
    }
    let (agent, model, none) = match target {
        ChatTarget::Agent(name) => (Some(name.to_string()), None, None),
        ChatTarget::Plain(model) => (None, model, Some(Vec::new())),
    };
    let is_plain = none.is_some();
    let request = TaskRequest {
        agent,
        model,
        // The conversation is added below.
        message: UserMessage { content: Vec::new(), timestamp: SystemClock.now() },
        history: Vec::new(),
        system_prompt: None,
        tools: none.clone(),
        agents: none,
        external_tools: chat.tools,
        limits: TaskLimits { answer_tokens_max: chat.max_tokens, ..TaskLimits::default() },
        output_schema: chat.schema,
        session_id: None,
    };
    let built = match build(state, caller, request, is_plain).await {
        Ok(built) => built,
        Err(error) => return Err(ChatError::native(error).await),
    };
    let task = NewTask {
        before: PriorHistory::Messages(chat.conversation.messages),
        message: None,
        manner: ModelOptions { temperature: chat.temperature, tool_choice: chat.tool_choice },
        ..built
    };
    let system = chat.conversation.system;
    if is_plain { Ok(plain_task(task, system)) } else { agent_task(task, &system) }
}

/// The task as the task factory builds it. A plain model has no tools that an agent's key could misuse.
async fn build(
    state: &AppState,
    caller: &Caller,
    request: TaskRequest,
    is_plain: bool,
) -> Result<NewTask, ApiError> {
    let (factory, principal) = (&*state.deps.task_factory, caller.principal());
    let request = if is_plain { request } else { restrict_to_agent(factory, &principal, request)? };
    let built = factory.task(request).await?;
    check_start_allowed(&state.deps.orchestrator, &principal, &built)?;
    Ok(built)
}

/// What the holder of an agent's key may send to an agent: one user message, which is read as data.
async fn restrict_conversation(
    caller: &Caller,
    conversation: Conversation,
) -> Result<Conversation, ChatError> {
    if caller.agent().is_none() {
        return Ok(conversation);
    }
    let from = match caller.sender() {
        Ok(from) => from,
        Err(error) => return Err(ChatError::native(error).await),
    };
    match (conversation.system.trim(), conversation.messages.as_slice()) {
        ("", [only]) if let Message::User(user) = &**only => {
            let labeled = labeled(from, user.clone());
            Ok(Conversation { messages: vec![Arc::new(labeled.into())], ..conversation })
        }
        _ => {
            let message = "an agent's key may send one user message to another agent, without system prompt \
                           and history: name a PROVIDER/MODEL for a whole conversation";
            Err(ChatError::new(StatusCode::FORBIDDEN, message))
        }
    }
}

/// A task of a plain model, with the client's system prompt alone.
fn plain_task(task: NewTask, system_prompt: String) -> NewTask {
    NewTask {
        agent: PLAIN.to_owned(),
        system_prompt,
        tools: Some(Vec::new()),
        agents: CallableAgents::Only(Vec::new()),
        limits: TaskLimits { turns_max: Some(PLAIN_TURNS_MAX), ..task.limits },
        ..task
    }
}

/// A task of an agent: its system prompt, followed by the client's.
fn agent_task(task: NewTask, system: &str) -> Result<NewTask, ChatError> {
    if !task.external_tools.is_empty() && !task.agents.is_nobody() {
        let message = format!(
            "agent `{}` may call other agents, which cannot use the client's tools: offer no tools, or \
             name an agent that calls no others",
            task.agent
        );
        return Err(ChatError::field("tools", message));
    }
    let parts = [task.system_prompt.as_str(), system];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.trim().is_empty()).collect();
    Ok(NewTask { system_prompt: parts.join("\n\n"), ..task })
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
