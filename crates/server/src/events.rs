//! The events of one task as server-sent events: as they were, then as they come.
//!
//! The `id` of each is its seq. A client that comes back with the last one it saw, as
//! `Last-Event-ID` or as `?after=`, gets what came behind it: nothing twice, nothing left out. The
//! stream ends behind the terminal status; whoever asks for more than that gets 204, which tells a
//! browser to stay away. Everything is read from the journal at the pace of the client, so a slow
//! one costs nothing but its place.

use std::convert::Infallible;
use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use antiphon_core::{ErrorCode, Position, Seq, TaskId};
use antiphon_runtime::Follower;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use schemars::{JsonSchema, json_schema};
use serde::Deserialize;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use crate::api_error::ApiError;
use crate::named::{Asked, Named};
use crate::openapi::{STREAM, Tag, Telling};
use crate::room::Room;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct FromQuery {
    /// The last one that was seen.
    after: Option<Seq>,
}

pub(crate) fn routes() -> ApiRouter<Arc<Room>> {
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
    ApiRouter::new().api_route("/v1/tasks/{id}/events", events)
}

pub(crate) async fn events(
    State(room): State<Arc<Room>>,
    Named(task_id): Named<TaskId>,
    Asked(query): Asked<FromQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let after = last_seen(&headers)?.or(query.after).unwrap_or_default();
    let summary = room.summary(&task_id).await?;
    if after > summary.seq {
        let message = format!("the task is at {}: nobody has seen {after}", summary.seq);
        return Err(ApiError::invalid(message));
    }
    if after == summary.seq && summary.status.is_terminal() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let place = Arc::clone(&room.streams).try_acquire_owned().map_err(|_| {
        let message = "too many streams are open: close one, or come back later";
        ApiError::new(ErrorCode::ServiceUnavailable, message)
    })?;
    let watcher = Watcher {
        follower: room.doors.orchestrator.follow(Some(task_id), Position(0)),
        after,
        closing: room.closing.clone(),
        _place: place,
    };
    let events = stream::unfold(Some(watcher), next);
    let alive = KeepAlive::new().interval(room.doors.limits.heartbeat).text("alive");
    Ok(Sse::new(events).keep_alive(alive).into_response())
}

/// What a client that comes back has seen.
fn last_seen(headers: &HeaderMap) -> Result<Option<Seq>, ApiError> {
    let Some(id) = headers.get("last-event-id") else { return Ok(None) };
    let seq = id.to_str().ok().and_then(|id| id.trim().parse().ok()).map(Seq);
    seq.map(Some).ok_or_else(|| ApiError::invalid("`Last-Event-ID` is the `id` of an event"))
}

/// Somebody who watches a task.
struct Watcher {
    follower: Follower,
    /// Seen already.
    after: Seq,
    closing: CancellationToken,
    _place: OwnedSemaphorePermit,
}

/// The next event, and who waits for the one behind it: nobody after the end.
async fn next(
    watcher: Option<Watcher>,
) -> Option<(Result<sse::Event, Infallible>, Option<Watcher>)> {
    let mut watcher = watcher?;
    loop {
        let event = tokio::select! {
            () = watcher.closing.cancelled() => return None,
            event = watcher.follower.next() => event,
        };
        let event = match event {
            Ok(event) if event.seq <= watcher.after => continue,
            Ok(event) => event,
            Err(error) => {
                tracing::warn!(%error, "a stream of events ends early");
                return None;
            }
        };
        let said = sse::Event::default()
            .id(event.seq.to_string())
            .event(event.body.event_type())
            .json_data(&event);
        return match said {
            Ok(said) => {
                watcher.after = event.seq;
                Some((Ok(said), (!event.body.ends_task()).then_some(watcher)))
            }
            Err(error) => {
                tracing::error!(%error, event.seq = event.seq.0, "an event has no JSON");
                None
            }
        };
    }
}
