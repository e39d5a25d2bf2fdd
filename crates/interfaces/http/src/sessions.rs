//! Conversations: listed, shown, taken elsewhere, brought here, and branched off.
//!
//! What is brought here was said elsewhere: it is kept as it is, and only a person may bring it, because
//! it is read later as what the user said.

use std::num::NonZeroUsize;
use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with};
use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_core::{ErrorCode, HistoryRef, Message, Session, SessionId, SessionSummary, TaskId};
use antiphon_runtime::{ImportedConversation, Orchestrator, OrchestratorError, PriorHistory};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::api_error::ApiError;
use crate::caller::Caller;
use crate::idempotency;
use crate::json::Json;
use crate::named::{Asked, Named};
use crate::on_behalf::forbidden;
use crate::openapi::{Tag, Telling};
use crate::room::AppState;
use crate::tasks::{LISTED, LISTED_MAX};

/// Tasks of one conversation that are looked at, at most.
const SESSION_TASKS_MAX: NonZeroUsize = NonZeroUsize::new(100_000).unwrap();

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let all = get_with(list, |route| {
        let summary = "Conversations, the one with the newest task first.";
        route.told("list_sessions", Tag::Sessions, summary)
    });
    let all = all.post_with(import, |route| {
        let summary = "Keeps the conversation of a session file (version 1), to be gone on with.";
        let route = route.told("import_session", Tag::Sessions, summary).keyed();
        let route =
            route.fails(&[403, 409]).response_with::<200, axum::Json<SessionKept>, _>(|told| {
                told.description("The `Idempotency-Key` was used before: what it kept.")
            });
        route.response::<201, axum::Json<SessionKept>>()
    });
    let show = get_with(show, |route| {
        route.told("show_session", Tag::Sessions, "One conversation, with what was said.")
    });
    let export = get_with(export, |route| {
        let route =
            route.told("export_session", Tag::Sessions, "It as a session file (version 1).");
        route.answers(200, "application/json", "The file.")
    });
    let fork = post_with(fork, |route| {
        let summary =
            "Begins another conversation with everything that was said. Nothing is copied.";
        let route = route.told("fork_session", Tag::Sessions, summary).keyed();
        let route = route.response_with::<200, axum::Json<SessionKept>, _>(|told| {
            told.description("The `Idempotency-Key` was used before: what it kept.")
        });
        route.response::<201, axum::Json<SessionKept>>()
    });
    ApiRouter::new()
        .api_route("/v1/sessions", all)
        .api_route("/v1/sessions/{id}", show)
        .api_route("/v1/sessions/{id}/export", export)
        .api_route("/v1/sessions/{id}/fork", fork)
}

/// A conversation of the journal at a glance, if it is there.
pub async fn session_summary(
    orchestrator: &Orchestrator,
    session_id: &SessionId,
) -> Result<Option<SessionSummary>, OrchestratorError> {
    let which = TaskSelector::Session(session_id.clone());
    let tasks = orchestrator.tasks(TaskQuery { which, limit: SESSION_TASKS_MAX }).await?;
    let (Some(newest), Some(oldest)) = (tasks.first(), tasks.last()) else { return Ok(None) };
    Ok(Some(SessionSummary {
        session_id: session_id.clone(),
        title: oldest.title.clone(),
        tasks: tasks.len() as u64,
        last_task: newest.task_id.clone(),
        status: newest.status,
        created_at: oldest.created_at,
        updated_at: newest.last_event_at,
    }))
}

/// A conversation with everything that was said in it.
pub async fn session_of(
    orchestrator: &Orchestrator,
    summary: SessionSummary,
) -> Result<Session, OrchestratorError> {
    let state = orchestrator.task(&summary.last_task).await?;
    Ok(Session {
        id: summary.session_id,
        system_prompt: state.created.system_prompt.clone(),
        created_at: summary.created_at,
        updated_at: summary.updated_at,
        messages: state.messages().to_vec(),
    })
}

/// A conversation that was held elsewhere, to be kept.
pub fn imported(session: Session) -> ImportedConversation {
    ImportedConversation {
        agent: "import".to_owned(),
        session_id: Some(session.id),
        system_prompt: session.system_prompt,
        before: PriorHistory::Messages(session.messages),
        key: None,
    }
}

/// A new conversation with everything that was said up to now in `last`, to be kept. Nothing is
/// copied.
pub async fn forked(
    orchestrator: &Orchestrator,
    last: TaskId,
) -> Result<ImportedConversation, OrchestratorError> {
    let state = orchestrator.task(&last).await?;
    Ok(ImportedConversation {
        agent: "fork".to_owned(),
        session_id: None,
        system_prompt: state.created.system_prompt.clone(),
        before: PriorHistory::Task(HistoryRef { task_id: last, seq: state.seq }),
        key: None,
    })
}

/// How many to list.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "SessionsQuery")]
pub(crate) struct ListQuery {
    /// How many, at most; 100 when absent.
    #[schemars(range(max = LISTED_MAX))]
    limit: Option<NonZeroUsize>,
}

/// Conversations.
#[derive(JsonSchema, Serialize)]
pub(crate) struct Sessions {
    /// The one with the newest task first.
    sessions: Vec<SessionSummary>,
}

async fn list(
    State(room): State<Arc<AppState>>,
    Asked(query): Asked<ListQuery>,
) -> Result<axum::Json<Sessions>, ApiError> {
    let limit = query.limit.map_or(LISTED, NonZeroUsize::get);
    if limit > LISTED_MAX {
        return Err(ApiError::invalid(format!("`limit`: {LISTED_MAX} at most")));
    }
    let limit = NonZeroUsize::new(limit).unwrap_or(NonZeroUsize::MIN);
    let sessions = room.doors.orchestrator.sessions(limit).await?;
    Ok(axum::Json(Sessions { sessions }))
}

/// A conversation, with what was said.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Session")]
pub(crate) struct SessionShown {
    #[serde(flatten)]
    summary: SessionSummary,
    /// The scene.
    system_prompt: String,
    /// What was said, in order, as in a session file.
    messages: Vec<Arc<Message>>,
}

async fn show(
    State(room): State<Arc<AppState>>,
    Named(session_id): Named<SessionId>,
) -> Result<axum::Json<SessionShown>, ApiError> {
    let summary = find(&room, &session_id).await?;
    let session = session_of(&room.doors.orchestrator, summary.clone()).await?;
    let Session { system_prompt, messages, .. } = session;
    Ok(axum::Json(SessionShown { summary, system_prompt, messages }))
}

async fn export(
    State(room): State<Arc<AppState>>,
    Named(session_id): Named<SessionId>,
) -> Result<Response, ApiError> {
    let summary = find(&room, &session_id).await?;
    let session = session_of(&room.doors.orchestrator, summary).await?;
    let file = antiphon_session_file::to_json(&session);
    let file = file.map_err(|error| ApiError::new(ErrorCode::InternalError, error.to_string()))?;
    Ok(([(CONTENT_TYPE, "application/json")], file).into_response())
}

/// A conversation that is kept.
#[derive(JsonSchema, Serialize)]
pub(crate) struct SessionKept {
    /// Which.
    session_id: SessionId,
    /// The task that holds it.
    task_id: TaskId,
}

/// A session file (version 1).
#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(rename = "SessionFile")]
pub(crate) struct SessionFileWire(#[schemars(with = "Map<String, Value>")] Box<RawValue>);

async fn import(
    State(room): State<Arc<AppState>>,
    caller: Caller,
    headers: HeaderMap,
    Json(SessionFileWire(file)): Json<SessionFileWire>,
) -> Result<(StatusCode, axum::Json<SessionKept>), ApiError> {
    if caller.agent().is_some() {
        let message =
            "an agent's key brings no conversations: what is in one is read as the user's words";
        return Err(forbidden(message));
    }
    let key = idempotency::key(&caller, "http-import", &headers)?;
    let session = antiphon_session_file::parse(file.get());
    let session = session.map_err(|error| ApiError::invalid(error.to_string()))?;
    keep(&room, ImportedConversation { key, ..imported(session) }).await
}

async fn fork(
    State(room): State<Arc<AppState>>,
    caller: Caller,
    Named(session_id): Named<SessionId>,
    headers: HeaderMap,
) -> Result<(StatusCode, axum::Json<SessionKept>), ApiError> {
    let key = idempotency::key(&caller, "http-fork", &headers)?;
    let last = find(&room, &session_id).await?.last_task;
    let kept = forked(&room.doors.orchestrator, last).await?;
    keep(&room, ImportedConversation { key, ..kept }).await
}

/// Keeps a conversation. When this is answered, the journal has it.
async fn keep(
    room: &AppState,
    kept: ImportedConversation,
) -> Result<(StatusCode, axum::Json<SessionKept>), ApiError> {
    let orchestrator = &room.doors.orchestrator;
    let before = if kept.key.is_some() { Some(orchestrator.head().await?) } else { None };
    let task_id = orchestrator.import_conversation(kept).await?;
    let repeated = room.was_there(&task_id, before).await?;
    let session_id = room.summary(&task_id).await?.session_id;
    let status = if repeated { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, axum::Json(SessionKept { session_id, task_id })))
}

async fn find(room: &AppState, session_id: &SessionId) -> Result<SessionSummary, ApiError> {
    let found = session_summary(&room.doors.orchestrator, session_id).await?;
    let none = || format!("there is no session `{session_id}`: see GET /v1/sessions");
    found.ok_or_else(|| ApiError::new(ErrorCode::NotFound, none()))
}
