//! Event streams (server-sent events) of one task or of the whole journal: past events, then new ones.
//!
//! The `id` of an event is its seq in the task, or its position in the journal. A client that reconnects with
//! the last id, as `Last-Event-ID` or as `?after=`, gets every later event exactly once. The stream of a task
//! ends after its terminal status; a client that reconnects after that gets 204, which asks a browser not to
//! reconnect. The stream of the journal ends when the server shuts down.

use std::sync::Arc;

use antiphon_api::{JournalEventQuery, TaskEventQuery};
use antiphon_core::{Position, Seq, TaskId};
use antiphon_interface_transport::openapi::{
    ApiRouter, DescribeRoute, EVENT_STREAM, Tag, get_with,
};
use antiphon_interface_transport::{
    ApiError, AppState, Caller, Deltas, EventFilter, PathId, QueryParams, StreamScope, event_stream,
};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::json_schema;

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let events = get_with(events, |route| {
        let summary = "Streams the events of a task: past events, then new ones.";
        let each = "Server-sent events: `id` is the event's `seq`, `event` its `type`, `data` the event as \
                    in events.schema.json.";
        let seen = json_schema!({ "type": "integer", "minimum": 0 });
        let route = route.describe("watch_task", Tag::Tasks, summary);
        let route = route.header("Last-Event-ID", "`id` of the last event that was seen.", seen);
        let route = route.responds(200, EVENT_STREAM, each);
        route.responds(204, "", "The task has ended, and all events were seen.").fails(&[400])
    });
    let journal = get_with(journal, |route| {
        let summary = "Streams the events of the whole journal.";
        let each = "Server-sent events: `id` is the event's `position`, `event` its `type`, `data` the event \
                    as in events.schema.json.";
        let seen = json_schema!({ "type": "integer", "minimum": 0 });
        let route = route.describe("watch_journal", Tag::Tasks, summary);
        let route = route.header("Last-Event-ID", "`id` of the last event that was seen.", seen);
        route.responds(200, EVENT_STREAM, each).fails(&[400, 404])
    });
    ApiRouter::new().api_route("/v1/tasks/{id}/events", events).api_route("/v1/events", journal)
}

pub(crate) async fn events(
    State(state): State<Arc<AppState>>,
    caller: Caller,
    PathId(task_id): PathId<TaskId>,
    QueryParams(query): QueryParams<TaskEventQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let after = last_seen(&headers)?.map(Seq).or(query.after).unwrap_or_default();
    let summary = state.summary(&task_id).await?;
    if after > summary.seq {
        let message =
            format!("the last event of the task is {}: `after` cannot be {after}", summary.seq);
        return Err(ApiError::invalid(message));
    }
    if after == summary.seq && summary.status.is_terminal() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    if query.owner {
        state.deps.orchestrator.client_follows(&task_id).await?;
    }
    let scope = StreamScope::Task { task_id, after };
    event_stream(&state, &caller, scope, deltas(query.deltas))
}

async fn journal(
    State(state): State<Arc<AppState>>,
    caller: Caller,
    QueryParams(query): QueryParams<JournalEventQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let types = query.types.as_deref().map(EventFilter::types).transpose()?;
    if let Some(root) = &query.root {
        let top = state.summary_for(&caller, root).await?.root;
        if top != *root {
            let message = format!("`root`: {root} has a parent; the root of its tree is {top}");
            return Err(ApiError::invalid(message));
        }
    }
    let head = state.deps.orchestrator.head().await?;
    let after = last_seen(&headers)?.map(Position).or(query.after).unwrap_or(head);
    if after > head {
        let message =
            format!("the last position of the journal is {head}: `after` cannot be {after}");
        return Err(ApiError::invalid(message));
    }
    let mut filter = EventFilter::default();
    filter.agent = query.agent;
    filter.session_id = query.session_id;
    filter.root = query.root;
    filter.types = types;
    filter.payer = caller.own_payer();
    let scope = StreamScope::Journal { filter, after, head };
    event_stream(&state, &caller, scope, deltas(query.deltas))
}

fn deltas(included: bool) -> Deltas {
    if included { Deltas::Included } else { Deltas::Excluded }
}

/// The last event that a reconnecting client has seen.
fn last_seen(headers: &HeaderMap) -> Result<Option<u64>, ApiError> {
    let Some(id) = headers.get("last-event-id") else { return Ok(None) };
    let seen = id.to_str().ok().and_then(|id| id.trim().parse().ok());
    seen.map(Some).ok_or_else(|| ApiError::invalid("`Last-Event-ID` must be the `id` of an event"))
}
