//! `POST /v1/chat/completions` and `GET /v1/models`: what OpenAI's clients know, and canonical chat.
//!
//! Every request is a task of its own in the journal. `model` names an agent, which works with its own
//! tools, or a `provider/model`, which answers with nothing of ours around it. Tools that the client
//! offers are the client's to run: an answer that calls them ends the task, and the next request brings
//! the whole conversation again. What cannot be honored is refused, in the shape of the body.

mod answer;
mod asked;
mod canonical;
mod models;
mod openai;
mod pairing;
mod refusal;
mod reply;
mod shapes;
mod watch;

use std::num::NonZeroU32;
use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with};
use antiphon_core::port::{Clock, IdempotencyKey, SystemClock};
use antiphon_core::{
    AgentName, CallableAgents, Message, ModelOptions, ModelRef, TaskId, TaskLimits, ToolChoice,
    UserMessage,
};
use antiphon_runtime::{NewTask, PriorHistory};
use axum::extract::{FromRequest, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use schemars::json_schema;

use self::answer::Letterhead;
use self::asked::{Asked, Fields, Said};
use self::refusal::{Refusal, Shape};
use self::reply::Reply;
use self::shapes::{ChatAnswer, ChatRequest, Model, Models, failing, streamed};
use self::watch::Watch;
use crate::api_error::ApiError;
use crate::caller::Caller;
use crate::json::Json;
use crate::openapi::{Tag, Telling};
use crate::room::AppState;
use crate::task_request::TaskRequest;
use crate::{idempotency, on_behalf};

/// Answers of a plain model to one request: more than one when it has to mend what it said.
const PLAIN_TURNS_MAX: NonZeroU32 = NonZeroU32::new(8).unwrap();

/// Who works on a request to a plain model, as the journal has it.
const PLAIN: &str = "chat";

const TASK: HeaderName = HeaderName::from_static("x-antiphon-task");

const CONTINUE: HeaderName = HeaderName::from_static("x-antiphon-continue");

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let completions = post_with(completions, |route| {
        let route = route.told("chat", Tag::Chat, "An answer, whole or as it comes.");
        let route = route.description(
            "A body whose messages carry `id` and `timestamp` is answered in canonical form, any other in \
             OpenAI's. With `stream` the answer is server-sent events.",
        );
        let route = route.input::<Json<ChatRequest>>().response::<200, axum::Json<ChatAnswer>>();
        let route = streamed(route).keyed();
        let goes_on = "`true`: the task goes on when you leave.";
        let route =
            route.header("X-Antiphon-Continue", goes_on, json_schema!({ "type": "boolean" }));
        failing(route, &[400, 404, 408, 409, 410, 413, 415, 422, 429, 500, 502, 503])
    });
    let list = get_with(models::list, |route| {
        let route = route.told("list_models", Tag::Chat, "Who can answer: agents and models.");
        route.response::<200, axum::Json<Models>>()
    });
    let show = get_with(models::show, |route| {
        let route = route.told("show_model", Tag::Chat, "One of them.");
        failing(route.response::<200, axum::Json<Model>>(), &[404])
    });
    ApiRouter::new()
        .api_route("/v1/chat/completions", completions)
        .api_route("/v1/models", list)
        .api_route("/v1/models/{*id}", show)
}

async fn completions(
    State(room): State<Arc<AppState>>,
    caller: Caller,
    request: Request,
) -> Response {
    let headers = request.headers().clone();
    let fields = match Json::<Fields>::from_request(request, &room).await {
        Ok(Json(fields)) => fields,
        Err(error) => return Refusal::native(error).await.into_response(Shape::OpenAi),
    };
    let shape = asked::shape(&fields);
    match accept(room, &caller, &headers, &fields, shape).await {
        Err(refusal) => refusal.into_response(shape),
        Ok((reply, stream)) => {
            let task_id = HeaderValue::from_str(reply.head.task_id.as_str());
            let mut response = if stream { reply.streamed().await } else { reply.whole().await };
            if let Ok(task_id) = task_id {
                response.headers_mut().insert(TASK, task_id);
            }
            response
        }
    }
}

/// Makes a task of a request. When this returns, the journal has it.
async fn accept(
    room: Arc<AppState>,
    caller: &Caller,
    headers: &HeaderMap,
    fields: &Fields,
    shape: Shape,
) -> Result<(Reply, bool), Refusal> {
    let asked = Asked::read(fields, shape)?;
    let (key, goes_on) = going_on(caller, headers).await?;
    let who = who(asked.model.as_deref(), &room.doors.desk.agents(), shape)?;
    let (stream, include_usage) = (asked.stream, asked.include_usage);
    let named = asked.model.clone();
    let task = task(&room, caller, who, asked).await?;
    let model = named.unwrap_or_else(|| task.model.to_string());
    let orchestrator = room.doors.orchestrator.clone();
    let payer = caller.payer();
    if let Err(error) = orchestrator.check_budget(payer.as_deref(), key.as_ref()).await {
        return Err(Refusal::of(error).await);
    }
    let task = NewTask { key, payer, ..task };
    let before = match task.key {
        None => None,
        Some(_) => match orchestrator.head().await {
            Ok(head) => Some(head),
            Err(error) => return Err(Refusal::native(error).await),
        },
    };
    let accepted = orchestrator.invoke_attached(task).await;
    let (task_id, mut attended): (TaskId, _) = match accepted {
        Ok(accepted) => accepted,
        Err(error) => return Err(Refusal::of(error).await),
    };
    let (follower, deltas) = (attended.take_follower(), attended.take_deltas());
    let attended = if goes_on {
        attended.detach();
        None
    } else {
        Some(attended)
    };
    // A trace is told of what is new; whoever is not sure says nothing.
    if matches!(room.was_there(&task_id, before).await, Ok(false)) {
        room.trace(headers, &task_id);
    }
    let watch = Watch::new(&orchestrator, task_id.clone(), follower, deltas);
    let head = Letterhead { task_id, created: SystemClock.now().timestamp(), model };
    let text = String::new();
    Ok((Reply { room, shape, head, include_usage, watch, attended, text }, stream))
}

/// The client's own name for the request, and whether its task goes on without it. Who gives a name
/// means to come back.
async fn going_on(
    caller: &Caller,
    headers: &HeaderMap,
) -> Result<(Option<IdempotencyKey>, bool), Refusal> {
    let key = match idempotency::key(caller, "chat", headers) {
        Ok(key) => key,
        Err(error) => return Err(Refusal::native(error).await),
    };
    let goes_on = match headers.get(CONTINUE).map(HeaderValue::as_bytes) {
        None => key.is_some(),
        Some(b"true") => true,
        Some(b"false") => false,
        Some(_) => {
            let message = "`X-Antiphon-Continue` is `true` or `false`";
            return Err(Refusal::new(StatusCode::BAD_REQUEST, message));
        }
    };
    Ok((key, goes_on))
}

/// Who answers.
enum Who {
    Agent(AgentName),
    /// The configured one when absent.
    Plain(Option<ModelRef>),
}

fn who(model: Option<&str>, agents: &[AgentName], shape: Shape) -> Result<Who, Refusal> {
    let Some(model) = model else {
        return match shape {
            Shape::Canonical => Ok(Who::Plain(None)),
            Shape::OpenAi => {
                Err(Refusal::field("model", "name an agent or a PROVIDER/MODEL: see /v1/models"))
            }
        };
    };
    if let Some(agent) = agents.iter().find(|agent| agent.as_str() == model) {
        return Ok(Who::Agent(agent.clone()));
    }
    ModelRef::parse(model).map(|model| Who::Plain(Some(model))).map_err(|_| nobody(model))
}

fn nobody(model: &str) -> Refusal {
    let message = format!("`{model}` is no agent, and no PROVIDER/MODEL: see /v1/models");
    let refusal = Refusal::field("model", message).coded("model_not_found");
    Refusal { status: StatusCode::NOT_FOUND, ..refusal }
}

/// The task that is asked for.
async fn task(
    room: &AppState,
    caller: &Caller,
    who: Who,
    mut asked: Asked,
) -> Result<NewTask, Refusal> {
    if let Who::Agent(name) = &who {
        match asked.tool_choice {
            ToolChoice::Auto => {}
            // It has tools of its own, which it goes on using.
            ToolChoice::None => asked.tools.clear(),
            ToolChoice::Required | ToolChoice::Named(_) => {
                let message = format!("agent `{name}` chooses itself: `auto` or `none`");
                return Err(Refusal::field("tool_choice", message));
            }
        }
        asked.tool_choice = ToolChoice::Auto;
        asked.said = on_behalf_of(caller, asked.said).await?;
    }
    let (agent, model, none) = match who {
        Who::Agent(name) => (Some(name.to_string()), None, None),
        Who::Plain(model) => (None, model, Some(Vec::new())),
    };
    let plain = none.is_some();
    let request = TaskRequest {
        agent,
        model,
        // What was said is added below.
        message: UserMessage { content: Vec::new(), timestamp: SystemClock.now() },
        history: Vec::new(),
        system_prompt: None,
        tools: none.clone(),
        agents: none,
        external_tools: asked.tools,
        limits: TaskLimits { answer_tokens_max: asked.max_tokens, ..TaskLimits::default() },
        output_schema: asked.schema,
        session_id: None,
    };
    let made = match made(room, caller, request, plain).await {
        Ok(made) => made,
        Err(error) => return Err(Refusal::native(error).await),
    };
    let task = NewTask {
        before: PriorHistory::Messages(asked.said.messages),
        message: None,
        manner: ModelOptions { temperature: asked.temperature, tool_choice: asked.tool_choice },
        ..made
    };
    if plain { Ok(bare(task, asked.said.system)) } else { told(task, &asked.said.system) }
}

/// The task as the desk makes it. A plain model has nothing that an agent's key could reach for.
async fn made(
    room: &AppState,
    caller: &Caller,
    request: TaskRequest,
    plain: bool,
) -> Result<NewTask, ApiError> {
    let request = if plain { request } else { on_behalf::bounded(room, caller, request)? };
    let made = room.doors.desk.task(request).await?;
    on_behalf::may_start(room, caller, &made)?;
    Ok(made)
}

/// What somebody with an agent's key says to an agent: one message, which is read as data.
async fn on_behalf_of(caller: &Caller, said: Said) -> Result<Said, Refusal> {
    if caller.agent().is_none() {
        return Ok(said);
    }
    let from = match caller.speaks_as() {
        Ok(from) => from,
        Err(error) => return Err(Refusal::native(error).await),
    };
    match (said.system.trim(), said.messages.as_slice()) {
        ("", [only]) if let Message::User(user) = &**only => {
            let labeled = on_behalf::labeled(from, user.clone());
            Ok(Said { messages: vec![Arc::new(labeled.into())], ..said })
        }
        _ => {
            let message = "an agent's key says one thing to another agent, as the user role, and neither \
                           sets the scene nor says what was said before: ask a PROVIDER/MODEL for that";
            Err(Refusal::new(StatusCode::FORBIDDEN, message))
        }
    }
}

/// A plain model: what the client says, and nothing of ours.
fn bare(task: NewTask, system_prompt: String) -> NewTask {
    NewTask {
        agent: PLAIN.to_owned(),
        system_prompt,
        tools: Some(Vec::new()),
        agents: CallableAgents::Only(Vec::new()),
        limits: TaskLimits { turns_max: Some(PLAIN_TURNS_MAX), ..task.limits },
        ..task
    }
}

/// An agent: its own scene, and what the client adds to it.
fn told(task: NewTask, system: &str) -> Result<NewTask, Refusal> {
    if !task.external_tools.is_empty() && !task.agents.is_nobody() {
        let message = format!(
            "agent `{}` calls other agents, and these cannot use a client's tools: offer none, or \
             name an agent that calls nobody",
            task.agent
        );
        return Err(Refusal::field("tools", message));
    }
    let parts = [task.system_prompt.as_str(), system];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.trim().is_empty()).collect();
    Ok(NewTask { system_prompt: parts.join("\n\n"), ..task })
}
