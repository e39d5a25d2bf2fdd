//! A stream of server-sent events from the journal.
//!
//! Events are read from the journal as fast as the client reads: a slow client misses no event, and costs only
//! its stream permit. Live deltas are dropped when the client is slow; the whole message follows from the
//! journal. Events that exist already are sent in one chunk, and serialized once for all watchers of a task. Where a
//! stream begins (`Last-Event-ID`) is read by its route.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;

use antiphon_core::port::{JournalError, TaskQuery, TaskSelector};
use antiphon_core::{EVENT_VERSION, ErrorCode, Position, Seq, TaskId};
use antiphon_runtime::{
    Delta, DeltaWatcher, Follower, Orchestrator, SerializedDelta, SerializedEvent, WatchedDelta,
};
use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, Interval, interval_at};
use tokio_util::sync::CancellationToken;

use crate::access::caller::Caller;
use crate::access::shared_limit::Reservation;
use crate::api_error::ApiError;
use crate::state::AppState;
use crate::stream::delta_order::{DeltaOrder, Due};
use crate::stream::event_filter::EventFilter;

/// A client of the whole journal gets a `lag` event when it is more events behind than this.
pub const LAG_EVENTS_MAX: u64 = 10_000;

/// Deltas that are sent in a row before the journal is read again.
const STREAK_MAX: usize = 64;

/// A chunk of the stream ends with the event that takes it beyond this many bytes.
const CHUNK_BYTES_MAX: usize = 64 * 1024;

/// The heartbeat: a comment that clients ignore.
const HEARTBEAT: &str = ": alive\n\n";

/// Events between two `lag` events.
const LAG_REPEAT_EVENTS: u64 = 10_000;

/// What a stream watches, and where it starts.
pub enum StreamScope {
    /// One task.
    Task {
        /// The task to watch.
        task_id: TaskId,
        /// Only later events are sent.
        after: Seq,
    },
    /// The whole journal.
    Journal {
        /// Only events that pass are sent.
        filter: EventFilter,
        /// Only later events are sent. At most `head`.
        after: Position,
        /// The end of the journal when the stream was opened.
        head: Position,
    },
}

/// Whether a stream sends live deltas too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deltas {
    /// Deltas are sent.
    Included,
    /// Only journal events are sent.
    Excluded,
}

/// The pending read of the next journal event. It survives deltas, because every new read starts with a look
/// at the journal.
type Reading =
    Pin<Box<dyn Future<Output = (Follower, Result<Arc<SerializedEvent>, JournalError>)> + Send>>;

struct EventStream {
    orchestrator: Orchestrator,
    scope: StreamScope,
    reading: Reading,
    /// Last position in the journal of what is watched.
    recorded: watch::Receiver<Position>,
    position: Position,
    /// End of the journal when the stream was opened.
    head: Position,
    deltas: Option<DeltaWatcher>,
    order: DeltaOrder,
    /// A delta of a turn that the stream has not reached.
    held: Option<Arc<SerializedDelta>>,
    /// Deltas since the journal was last read.
    streak: usize,
    /// Position of the last `lag` event.
    lag_sent_at: Option<Position>,
    /// The next chunk.
    chunk: String,
    ended: bool,
    heartbeat: Interval,
    closing: CancellationToken,
    _slot: Reservation,
}

/// A permit for one more stream of a caller. Fails with 503 when
/// [`ServerLimits::streams_max`](crate::ServerLimits::streams_max) streams are open, or three quarters of them with API keys
/// and the caller has one.
pub fn stream_slot(state: &AppState, caller: &Caller) -> Result<Reservation, ApiError> {
    state.streams.reserve(Some(caller), 1).ok_or_else(|| {
        let message = "too many open streams: close one, or retry later";
        ApiError::new(ErrorCode::ServiceUnavailable, message)
    })
}

/// A response that streams the events of `scope` until the task ends or the server shuts down.
pub fn event_stream(
    state: &AppState,
    caller: &Caller,
    scope: StreamScope,
    deltas: Deltas,
) -> Result<Response, ApiError> {
    let slot = stream_slot(state, caller)?;
    let orchestrator = state.deps.orchestrator.clone();
    let deltas = (deltas == Deltas::Included).then(|| match &scope {
        StreamScope::Task { task_id, .. } => orchestrator.task_deltas(task_id),
        StreamScope::Journal { filter, .. } => match &filter.root {
            Some(root) => orchestrator.tree_deltas(root),
            None => orchestrator.deltas(),
        },
    });
    let (task_id, after, head) = match &scope {
        StreamScope::Task { task_id, .. } => (Some(task_id.clone()), Position(0), Position(0)),
        StreamScope::Journal { after, head, .. } => (None, *after, *head),
    };
    let follower = orchestrator.follow(task_id, after);
    let interval = state.deps.limits.heartbeat;
    let stream = EventStream {
        recorded: follower.written(),
        reading: read_on(follower),
        position: after,
        head,
        deltas,
        order: DeltaOrder::default(),
        held: None,
        streak: 0,
        lag_sent_at: None,
        chunk: String::new(),
        ended: false,
        heartbeat: interval_at(Instant::now() + interval, interval),
        closing: state.closing.clone(),
        orchestrator,
        scope,
        _slot: slot,
    };
    let chunks = stream::unfold(stream, |mut stream| async move {
        let chunk = stream.next().await?;
        stream.heartbeat.reset();
        Some((Ok::<_, Infallible>(chunk), stream))
    });
    let kind = [(CONTENT_TYPE, "text/event-stream")];
    Ok((kind, Body::from_stream(chunks)).into_response())
}

fn read_on(mut follower: Follower) -> Reading {
    Box::pin(async move {
        let event = follower.next_serialized().await;
        (follower, event)
    })
}

impl EventStream {
    /// The next chunk; `None` after the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if !self.chunk.is_empty() {
                return Some(std::mem::take(&mut self.chunk).into());
            }
            if self.ended {
                return None;
            }
            if let Some(delta) = self.held.take().or_else(|| self.ready_delta()) {
                self.send_delta(delta).await;
            }
            if self.held.is_none() && self.streak > 0 || !self.chunk.is_empty() {
                continue;
            }
            let listens = self.held.is_none();
            tokio::select! {
                biased;
                () = self.closing.cancelled() => return None,
                (follower, event) = &mut self.reading => self.read_ready(follower, event).await,
                delta = receive(&mut self.deltas), if listens => match delta {
                    Some(WatchedDelta::Delta(delta)) => self.send_delta(delta).await,
                    Some(WatchedDelta::Missed(count)) => self.send_missed(count),
                    None => self.deltas = None,
                },
                _ = self.heartbeat.tick() => return Some(Bytes::from_static(HEARTBEAT.as_bytes())),
            }
        }
    }

    /// A delta that is available already: it precedes later journal events. After [`STREAK_MAX`] deltas the
    /// journal is read first.
    fn ready_delta(&mut self) -> Option<Arc<SerializedDelta>> {
        let deltas = self.deltas.as_mut().filter(|_| self.streak < STREAK_MAX);
        self.streak = deltas.as_ref().map_or(0, |_| self.streak + 1);
        match deltas?.try_recv() {
            Some(WatchedDelta::Delta(delta)) => Some(delta),
            Some(WatchedDelta::Missed(count)) => {
                self.send_missed(count);
                None
            }
            None => {
                self.streak = 0;
                None
            }
        }
    }

    /// Sends an event, and the other events that are available. With deltas, which may belong between any two
    /// events, sends one at a time.
    async fn read_ready(
        &mut self,
        mut follower: Follower,
        event: Result<Arc<SerializedEvent>, JournalError>,
    ) {
        let mut next = match event {
            Ok(event) => Some(event),
            Err(error) => {
                tracing::warn!(%error, "an event stream ends early");
                self.ended = true;
                return;
            }
        };
        while let Some(event) = next {
            self.read(&event, follower.behind()).await;
            let more = !self.ended && self.deltas.is_none() && self.chunk.len() < CHUNK_BYTES_MAX;
            next = if more { follower.next_ready() } else { None };
        }
        self.reading = read_on(follower);
    }

    async fn read(&mut self, serialized: &SerializedEvent, lag: u64) {
        let event = serialized.value();
        self.position = event.position;
        if self.deltas.is_some() {
            self.order.note(event);
        }
        let passes = match &mut self.scope {
            StreamScope::Task { after, .. } => Ok(event.seq > *after),
            StreamScope::Journal { filter, .. } => filter.passes(&self.orchestrator, event).await,
        };
        match passes {
            Ok(passes) => {
                self.send_lag(lag);
                if passes {
                    self.send(serialized);
                }
            }
            Err(error) => {
                tracing::warn!(%error, "an event stream ends early");
                self.ended = true;
            }
        }
    }

    fn send(&mut self, serialized: &SerializedEvent) {
        let event = serialized.value();
        let id = match &self.scope {
            StreamScope::Task { .. } => {
                self.ended = event.body.ends_task();
                event.seq.0
            }
            StreamScope::Journal { .. } => event.position.0,
        };
        match serialized.json() {
            Ok(json) => {
                let kind = event.body.event_type();
                // Writing to a string does not fail.
                let _ = write!(self.chunk, "id: {id}\nevent: {kind}\ndata: {json}\n\n");
            }
            Err(error) => {
                tracing::error!(%error, event.position = event.position.0, "an event cannot be serialized");
                self.ended = true;
            }
        }
    }

    /// Sends an event that is not in the journal, and has no id.
    fn send_unrecorded(&mut self, kind: &str, json: &str) {
        let _ = write!(self.chunk, "event: {kind}\ndata: {json}\n\n");
    }

    /// Sends a delta, holds it until its turn, or drops it. The journal has the whole message anyway.
    async fn send_delta(&mut self, serialized: Arc<SerializedDelta>) {
        let delta = serialized.value();
        let passes = match &mut self.scope {
            StreamScope::Task { .. } => Ok(true),
            StreamScope::Journal { filter, .. } => {
                filter.passes_task(&self.orchestrator, &delta.task_id).await
            }
        };
        if !matches!(passes, Ok(true)) {
            return;
        }
        match self.due(delta).await {
            Due::Never => {}
            Due::Later => self.held = Some(serialized),
            Due::Now => {
                if let Ok(json) = serialized.json() {
                    self.send_unrecorded("delta", json);
                }
            }
        }
    }

    /// When a delta is sent. A task that existed before the stream is tracked once the events from before the
    /// stream are read.
    async fn due(&mut self, delta: &Delta) -> Due {
        if !self.order.tracks(&delta.task_id) {
            let recorded = (*self.recorded.borrow()).max(self.head);
            if matches!(self.scope, StreamScope::Task { .. }) || self.position < recorded {
                return Due::Later;
            }
            let which = TaskSelector::One(delta.task_id.clone());
            let query = TaskQuery { which, limit: NonZeroUsize::MIN };
            for task in self.orchestrator.tasks(query).await.unwrap_or_default() {
                self.order.join(task);
            }
        }
        self.order.due(delta)
    }

    /// Tells the client that it is far behind. The stream continues where it is.
    fn send_lag(&mut self, behind: u64) {
        if matches!(self.scope, StreamScope::Task { .. }) {
            return;
        }
        let is_recent = |last: Position| self.position.0 - last.0 < LAG_REPEAT_EVENTS;
        if behind <= LAG_EVENTS_MAX || self.lag_sent_at.is_some_and(is_recent) {
            return;
        }
        self.lag_sent_at = Some(self.position);
        let lag = json!({"behind": behind, "position": self.position});
        self.send_unrecorded("lag", &lag.to_string());
    }

    fn send_missed(&mut self, count: u64) {
        let mut missed =
            json!({"v": EVENT_VERSION, "type": "deltas_missed", "data": {"count": count}});
        if let StreamScope::Task { task_id, .. } = &self.scope {
            missed["task_id"] = json!(task_id);
        }
        self.send_unrecorded("delta", &missed.to_string());
    }
}

/// The next delta; pends forever when deltas are excluded.
async fn receive(deltas: &mut Option<DeltaWatcher>) -> Option<WatchedDelta> {
    match deltas {
        None => std::future::pending().await,
        Some(deltas) => deltas.recv().await,
    }
}
