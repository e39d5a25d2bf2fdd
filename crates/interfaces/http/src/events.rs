//! Events as server-sent events: as they were, then as they come. Of one task, or of the whole journal.
//!
//! The `id` of each is its seq in its task, or its position in the journal. A client that comes back
//! with the last one it saw, as `Last-Event-ID` or as `?after=`, gets what came behind it: nothing
//! twice, nothing left out. The stream of a task ends behind its terminal status; whoever asks for more
//! than that gets 204, which tells a browser to stay away. That of the journal ends with the server.

use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use antiphon_api::{JournalEventQuery, TaskEventQuery};
use antiphon_core::{Position, Seq, TaskId};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::json_schema;

use crate::api_error::ApiError;
use crate::event_filter::EventFilter;
use crate::named::{Asked, Named};
use crate::openapi::{STREAM, Tag, Telling};
use crate::room::AppState;
use crate::watcher::{Deltas, Scope, stream_of};

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let events = get_with(events, |route| {
        let summary = "The events of a task, as they were and as they come.";
        let each = "Server-sent events: `id` is the event's `seq`, `event` its `type`, `data` the event as \
                    in events.schema.json.";
        let seen = json_schema!({ "type": "integer", "minimum": 0 });
        let route = route.told("watch_task", Tag::Tasks, summary);
        let route = route.header("Last-Event-ID", "The last one that was seen.", seen);
        let route = route.answers(200, STREAM, each);
        route.answers(204, "", "It has ended, and everything was seen.").fails(&[400])
    });
    let journal = get_with(journal, |route| {
        let summary = "The events of the whole journal, as they were and as they come.";
        let each = "Server-sent events: `id` is the event's `position`, `event` its `type`, `data` the event \
                    as in events.schema.json.";
        let seen = json_schema!({ "type": "integer", "minimum": 0 });
        let route = route.told("watch_journal", Tag::Tasks, summary);
        let route = route.header("Last-Event-ID", "The last one that was seen.", seen);
        route.answers(200, STREAM, each).fails(&[400, 404])
    });
    ApiRouter::new().api_route("/v1/tasks/{id}/events", events).api_route("/v1/events", journal)
}

pub(crate) async fn events(
    State(room): State<Arc<AppState>>,
    Named(task_id): Named<TaskId>,
    Asked(query): Asked<TaskEventQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let after = last_seen(&headers)?.map(Seq).or(query.after).unwrap_or_default();
    let summary = room.summary(&task_id).await?;
    if after > summary.seq {
        let message = format!("the task is at {}: nobody has seen {after}", summary.seq);
        return Err(ApiError::invalid(message));
    }
    if after == summary.seq && summary.status.is_terminal() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let scope = Scope::Task { task_id, after };
    stream_of(&room, scope, shown(query.deltas))
}

async fn journal(
    State(room): State<Arc<AppState>>,
    Asked(query): Asked<JournalEventQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let types = query.types.as_deref().map(EventFilter::types).transpose()?;
    if let Some(root) = &query.root {
        let top = room.summary(root).await?.root;
        if top != *root {
            let message = format!("`root`: {root} is not the top of its tree, but {top}");
            return Err(ApiError::invalid(message));
        }
    }
    let head = room.doors.orchestrator.head().await?;
    let after = last_seen(&headers)?.map(Position).or(query.after).unwrap_or(head);
    if after > head {
        let message = format!("the journal is at {head}: nobody has seen {after}");
        return Err(ApiError::invalid(message));
    }
    let mut filter = EventFilter::default();
    filter.agent = query.agent;
    filter.session_id = query.session_id;
    filter.root = query.root;
    filter.types = types;
    let scope = Scope::Journal { filter, after, head };
    stream_of(&room, scope, shown(query.deltas))
}

fn shown(deltas: bool) -> Deltas {
    if deltas { Deltas::Shown } else { Deltas::LeftOut }
}

/// What a client that comes back has seen.
fn last_seen(headers: &HeaderMap) -> Result<Option<u64>, ApiError> {
    let Some(id) = headers.get("last-event-id") else { return Ok(None) };
    let seen = id.to_str().ok().and_then(|id| id.trim().parse().ok());
    seen.map(Some).ok_or_else(|| ApiError::invalid("`Last-Event-ID` is the `id` of an event"))
}
