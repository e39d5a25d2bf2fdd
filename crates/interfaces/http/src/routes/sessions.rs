//! Sessions: listed, shown, exported, imported and forked. Only a person may import a session, because the
//! model reads its messages later as the user's words.

use std::sync::Arc;

use antiphon_api::{SessionDetail, SessionFile, SessionImported, SessionList, SessionQuery};
use antiphon_core::port;
use antiphon_core::{ErrorCode, Session, SessionId, SessionSummary};
use antiphon_interface_transport::openapi::{ApiRouter, DescribeRoute, Tag, get_with, post_with};
use antiphon_interface_transport::{
    ApiError, AppState, Caller, Json, PathId, QueryParams, idempotency, no_session,
};
use antiphon_project::{
    Principal, forbidden, forked, imported, own_sessions, session_of, session_summary,
};
use antiphon_runtime::{AcceptedTask, ImportedConversation};
use antiphon_session_file::FormatError;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::routes::{check_cursor, cut_page, page_size};

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let all = get_with(list, |route| {
        let summary = "Lists sessions, the one with the newest task first.";
        route.describe("list_sessions", Tag::Sessions, summary)
    });
    let all = all.post_with(import, |route| {
        let summary =
            "Imports a session file (version 1), so that a task can continue the session.";
        let route = route.describe("import_session", Tag::Sessions, summary).with_idempotency_key();
        let route = route.fails(&[403, 409]).response_with::<200, axum::Json<SessionImported>, _>(
            |response| {
                response
                    .description("The `Idempotency-Key` was used before: the session from then.")
            },
        );
        route.response::<201, axum::Json<SessionImported>>()
    });
    let show = get_with(show, |route| {
        route.describe("show_session", Tag::Sessions, "A session with its messages.")
    });
    let export = get_with(export, |route| {
        let route = route.describe(
            "export_session",
            Tag::Sessions,
            "Exports a session as a session file (version 1).",
        );
        route.responds(200, "application/json", "The session file.")
    });
    let fork = post_with(fork, |route| {
        let summary = "Starts a new session with the messages of this one. No message is copied.";
        let route = route.describe("fork_session", Tag::Sessions, summary).with_idempotency_key();
        let route = route.response_with::<200, axum::Json<SessionImported>, _>(|response| {
            response.description("The `Idempotency-Key` was used before: the session from then.")
        });
        route.response::<201, axum::Json<SessionImported>>()
    });
    ApiRouter::new()
        .api_route("/v1/sessions", all)
        .api_route("/v1/sessions/{id}", show)
        .api_route("/v1/sessions/{id}/export", export)
        .api_route("/v1/sessions/{id}/fork", fork)
}

async fn list(
    State(state): State<Arc<AppState>>,
    caller: Caller,
    QueryParams(query): QueryParams<SessionQuery>,
) -> Result<axum::Json<SessionList>, ApiError> {
    let limit = page_size(query.limit)?;
    let orchestrator = &state.deps.orchestrator;
    if let Some(cursor) = query.cursor.clone() {
        check_cursor(&state, &caller, &cursor).await?;
    }
    // One more session says that there is another page.
    let page = port::SessionQuery { before: query.cursor, limit: limit.saturating_add(1) };
    let mut sessions = match caller.own_payer() {
        None => orchestrator.sessions(page).await?,
        Some(payer) => own_sessions(orchestrator, payer, page).await?,
    };
    let next_cursor = cut_page(&mut sessions, limit).map(|last| last.last_task.clone());
    Ok(axum::Json(SessionList { sessions, next_cursor }))
}

async fn show(
    State(state): State<Arc<AppState>>,
    PathId(session_id): PathId<SessionId>,
) -> Result<axum::Json<SessionDetail>, ApiError> {
    let summary = find(&state, &session_id).await?;
    let session = session_of(&state.deps.orchestrator, summary.clone()).await?;
    let Session { system_prompt, messages, .. } = session;
    Ok(axum::Json(SessionDetail { summary, system_prompt, messages }))
}

async fn export(
    State(state): State<Arc<AppState>>,
    PathId(session_id): PathId<SessionId>,
) -> Result<Response, ApiError> {
    let summary = find(&state, &session_id).await?;
    let session = session_of(&state.deps.orchestrator, summary).await?;
    let file = antiphon_session_file::to_json(&session);
    let file = file.map_err(|error| ApiError::new(ErrorCode::InternalError, error.to_string()))?;
    Ok(([(CONTENT_TYPE, "application/json")], file).into_response())
}

async fn import(
    State(state): State<Arc<AppState>>,
    caller: Caller,
    headers: HeaderMap,
    Json(SessionFile(file)): Json<SessionFile>,
) -> Result<(StatusCode, axum::Json<SessionImported>), ApiError> {
    if caller.own_payer().is_some() {
        let message =
            "a key of scope `own` cannot import sessions, whose ids may be those of others";
        return Err(forbidden(message).into());
    }
    if caller.agent().is_some() {
        let message =
            "an agent's key cannot import sessions: the model reads them as the user's words";
        return Err(forbidden(message).into());
    }
    let key = idempotency::key(&caller, Principal::IMPORTS, &headers)?;
    let session = antiphon_session_file::parse(file.get());
    let session = session.map_err(|error| unreadable(&error))?;
    store(&state, ImportedConversation { key, payer: caller.payer(), ..imported(session) }).await
}

async fn fork(
    State(state): State<Arc<AppState>>,
    caller: Caller,
    PathId(session_id): PathId<SessionId>,
    headers: HeaderMap,
) -> Result<(StatusCode, axum::Json<SessionImported>), ApiError> {
    let key = idempotency::key(&caller, Principal::FORKS, &headers)?;
    let last = find(&state, &session_id).await?.last_task;
    let fork = forked(&state.deps.orchestrator, last).await?;
    store(&state, ImportedConversation { key, payer: caller.payer(), ..fork }).await
}

/// A session file that cannot be read, with the message that is wrong, if it is one.
fn unreadable(error: &FormatError) -> ApiError {
    match error {
        FormatError::Message { index, reason } => {
            ApiError::invalid(format!("`messages[{index}]`: {reason}"))
        }
        FormatError::Version { .. } => ApiError::invalid(format!("`version`: {error}")),
        FormatError::Empty | FormatError::Malformed { .. } => {
            ApiError::invalid(format!("`body`: {error}"))
        }
    }
}

/// Stores a session. It is durable before the response.
async fn store(
    state: &AppState,
    session: ImportedConversation,
) -> Result<(StatusCode, axum::Json<SessionImported>), ApiError> {
    let orchestrator = &state.deps.orchestrator;
    let accepted = orchestrator.import_conversation(session).await?;
    let AcceptedTask { task_id, deduplicated } = accepted;
    let session_id = state.summary(&task_id).await?.session_id;
    let status = if deduplicated { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, axum::Json(SessionImported { session_id, task_id })))
}

async fn find(state: &AppState, session_id: &SessionId) -> Result<SessionSummary, ApiError> {
    let found = session_summary(&state.deps.orchestrator, session_id).await?;
    found.ok_or_else(|| no_session(session_id))
}
