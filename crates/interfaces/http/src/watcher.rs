//! Somebody who watches the journal through a stream of server-sent events.
//!
//! Everything that is kept is read from the journal at the pace of the client: a slow one costs nothing
//! but its place, and nothing is skipped. What is shown as it comes and not kept is dropped when the
//! client is slow: the whole follows from the journal. What is there already is said in one piece, and
//! written out once for all who watch the same task.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;

use antiphon_core::port::{JournalError, TaskQuery, TaskSelector};
use antiphon_core::{EVENT_VERSION, ErrorCode, Position, Seq, TaskId};
use antiphon_runtime::{Delta, Follower, Orchestrator, SerializedEvent};
use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Serialize;
use serde_json::json;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{OwnedSemaphorePermit, broadcast, watch};
use tokio::time::{Instant, Interval, interval_at};
use tokio_util::sync::CancellationToken;

use crate::api_error::ApiError;
use crate::event_filter::EventFilter;
use crate::pace::{Due, Pace};
use crate::room::AppState;

/// A client of the whole journal that is more events behind than this is told.
pub const LAG_EVENTS_MAX: u64 = 10_000;

/// Pieces of what is still going on that are told in a row before the journal has its turn.
const STREAK_MAX: usize = 64;

/// A piece of the stream ends with the event that takes it over this many bytes.
const SAID_BYTES_MAX: usize = 64 * 1024;

/// What a stream with nothing to say says.
const ALIVE: &str = ": alive\n\n";

/// It is told again after so many events.
const LAG_AGAIN_EVENTS: u64 = 10_000;

/// What is watched, and from where.
pub(crate) enum Scope {
    /// One task: what is behind `after`.
    Task { task_id: TaskId, after: Seq },
    /// The whole journal, as far as it passes: what is behind `after`, which is `head` at most.
    Journal { filter: EventFilter, after: Position, head: Position },
}

/// Whether what is not kept is shown, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deltas {
    Shown,
    LeftOut,
}

/// The next event of the journal. It is not begun anew for every delta, for each begins with a look at
/// the journal.
type Reading =
    Pin<Box<dyn Future<Output = (Follower, Result<Arc<SerializedEvent>, JournalError>)> + Send>>;

struct Watcher {
    orchestrator: Orchestrator,
    scope: Scope,
    reading: Reading,
    /// How far was written of what is watched.
    written: watch::Receiver<Position>,
    position: Position,
    /// What was there when the stream was opened.
    there: Position,
    deltas: Option<broadcast::Receiver<Delta>>,
    pace: Pace,
    /// A piece of a turn that the stream has not come to.
    ahead: Option<Delta>,
    /// Pieces that were taken since the journal was looked at.
    streak: usize,
    /// Where the client was last told that it is far behind.
    lag_told: Option<Position>,
    /// What is said next.
    said: String,
    over: bool,
    alive: Interval,
    closing: CancellationToken,
    _place: OwnedSemaphorePermit,
}

/// A stream of what is watched.
pub(crate) fn stream_of(
    room: &AppState,
    scope: Scope,
    deltas: Deltas,
) -> Result<Response, ApiError> {
    let place = Arc::clone(&room.streams).try_acquire_owned().map_err(|_| {
        let message = "too many streams are open: close one, or come back later";
        ApiError::new(ErrorCode::ServiceUnavailable, message)
    })?;
    let orchestrator = room.doors.orchestrator.clone();
    let deltas = (deltas == Deltas::Shown).then(|| orchestrator.deltas());
    let (task_id, after, there) = match &scope {
        Scope::Task { task_id, .. } => (Some(task_id.clone()), Position(0), Position(0)),
        Scope::Journal { after, head, .. } => (None, *after, *head),
    };
    let follower = orchestrator.follow(task_id, after);
    let heartbeat = room.doors.limits.heartbeat;
    let watcher = Watcher {
        written: follower.written(),
        reading: read_on(follower),
        position: after,
        there,
        deltas,
        pace: Pace::default(),
        ahead: None,
        streak: 0,
        lag_told: None,
        said: String::new(),
        over: false,
        alive: interval_at(Instant::now() + heartbeat, heartbeat),
        closing: room.closing.clone(),
        orchestrator,
        scope,
        _place: place,
    };
    let pieces = stream::unfold(watcher, |mut watcher| async move {
        let said = watcher.next().await?;
        watcher.alive.reset();
        Some((Ok::<_, Infallible>(said), watcher))
    });
    let kind = [(CONTENT_TYPE, "text/event-stream")];
    Ok((kind, Body::from_stream(pieces)).into_response())
}

fn read_on(mut follower: Follower) -> Reading {
    Box::pin(async move {
        let told = follower.next_serialized().await;
        (follower, told)
    })
}

impl Watcher {
    /// What is said next; nothing behind the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if !self.said.is_empty() {
                return Some(std::mem::take(&mut self.said).into());
            }
            if self.over {
                return None;
            }
            if let Some(delta) = self.ahead.take().or_else(|| self.piece()) {
                self.show(delta).await;
            }
            if self.ahead.is_none() && self.streak > 0 || !self.said.is_empty() {
                continue;
            }
            let listens = self.ahead.is_none();
            tokio::select! {
                biased;
                () = self.closing.cancelled() => return None,
                (follower, told) = &mut self.reading => self.read_ready(follower, told).await,
                delta = receive(&mut self.deltas), if listens => match delta {
                    Ok(delta) => self.show(delta).await,
                    Err(RecvError::Lagged(count)) => self.tell_missed(count),
                    Err(RecvError::Closed) => self.deltas = None,
                },
                _ = self.alive.tick() => return Some(Bytes::from_static(ALIVE.as_bytes())),
            }
        }
    }

    /// A piece that is there already: it comes before what is written behind it. The journal has its
    /// turn after so many.
    fn piece(&mut self) -> Option<Delta> {
        let deltas = self.deltas.as_mut().filter(|_| self.streak < STREAK_MAX);
        self.streak = deltas.as_ref().map_or(0, |_| self.streak + 1);
        match deltas?.try_recv() {
            Ok(delta) => Some(delta),
            Err(TryRecvError::Lagged(count)) => {
                self.tell_missed(count);
                None
            }
            Err(TryRecvError::Empty | TryRecvError::Closed) => {
                self.streak = 0;
                None
            }
        }
    }

    /// Takes what was read, and what else is there. Pieces of what is going on have their place between
    /// any two, so with them it is one at a time.
    async fn read_ready(
        &mut self,
        mut follower: Follower,
        told: Result<Arc<SerializedEvent>, JournalError>,
    ) {
        let mut next = match told {
            Ok(told) => Some(told),
            Err(error) => {
                tracing::warn!(%error, "a stream of events ends early");
                self.over = true;
                return;
            }
        };
        while let Some(told) = next {
            self.read(&told, follower.behind()).await;
            let more = !self.over && self.deltas.is_none() && self.said.len() < SAID_BYTES_MAX;
            next = if more { follower.next_ready() } else { None };
        }
        self.reading = read_on(follower);
    }

    async fn read(&mut self, told: &SerializedEvent, lag: u64) {
        let event = told.event();
        self.position = event.position;
        if self.deltas.is_some() {
            self.pace.note(event);
        }
        let passes = match &mut self.scope {
            Scope::Task { after, .. } => Ok(event.seq > *after),
            Scope::Journal { filter, .. } => filter.passes(&self.orchestrator, event).await,
        };
        match passes {
            Ok(passes) => {
                self.tell_lag(lag);
                if passes {
                    self.say(told);
                }
            }
            Err(error) => {
                tracing::warn!(%error, "a stream of events ends early");
                self.over = true;
            }
        }
    }

    fn say(&mut self, told: &SerializedEvent) {
        let event = told.event();
        let id = match &self.scope {
            Scope::Task { .. } => {
                self.over = event.body.ends_task();
                event.seq.0
            }
            Scope::Journal { .. } => event.position.0,
        };
        match told.json() {
            Ok(json) => {
                let kind = event.body.event_type();
                // A text takes everything.
                let _ = write!(self.said, "id: {id}\nevent: {kind}\ndata: {json}\n\n");
            }
            Err(error) => {
                tracing::error!(%error, event.position = event.position.0, "an event has no JSON");
                self.over = true;
            }
        }
    }

    /// Says something that is in no journal, and has no id.
    fn mention(&mut self, kind: &str, data: &impl Serialize) {
        if let Ok(json) = serde_json::to_string(data) {
            let _ = write!(self.said, "event: {kind}\ndata: {json}\n\n");
        }
    }

    /// Shows a piece where it belongs, or keeps it until then. Whoever misses one still gets the whole.
    async fn show(&mut self, delta: Delta) {
        let passes = match &mut self.scope {
            Scope::Task { task_id, .. } => Ok(delta.task_id == *task_id),
            Scope::Journal { filter, .. } => filter.knows(&self.orchestrator, &delta.task_id).await,
        };
        if !matches!(passes, Ok(true)) {
            return;
        }
        match self.due(&delta).await {
            Due::Never => {}
            Due::Later => self.ahead = Some(delta),
            Due::Now => self.mention("delta", &delta),
        }
    }

    /// When a piece is shown. A task that was there before the stream is joined once everything was
    /// read that was there then.
    async fn due(&mut self, delta: &Delta) -> Due {
        if !self.pace.knows(&delta.task_id) {
            let written = (*self.written.borrow()).max(self.there);
            if matches!(self.scope, Scope::Task { .. }) || self.position < written {
                return Due::Later;
            }
            let which = TaskSelector::One(delta.task_id.clone());
            let query = TaskQuery { which, limit: NonZeroUsize::MIN };
            for task in self.orchestrator.tasks(query).await.unwrap_or_default() {
                self.pace.join(task);
            }
        }
        self.pace.due(delta)
    }

    /// Tells a client that it is far behind. It goes on where it is.
    fn tell_lag(&mut self, behind: u64) {
        if matches!(self.scope, Scope::Task { .. }) {
            return;
        }
        let told = |last: Position| self.position.0 - last.0 < LAG_AGAIN_EVENTS;
        if behind <= LAG_EVENTS_MAX || self.lag_told.is_some_and(told) {
            return;
        }
        self.lag_told = Some(self.position);
        let lag = json!({"behind": behind, "position": self.position});
        self.mention("lag", &lag);
    }

    fn tell_missed(&mut self, count: u64) {
        let mut missed =
            json!({"v": EVENT_VERSION, "type": "deltas_missed", "data": {"count": count}});
        if let Scope::Task { task_id, .. } = &self.scope {
            missed["task_id"] = json!(task_id);
        }
        self.mention("delta", &missed);
    }
}

/// The next delta, if there are any.
async fn receive(deltas: &mut Option<broadcast::Receiver<Delta>>) -> Result<Delta, RecvError> {
    match deltas {
        None => std::future::pending().await,
        Some(deltas) => deltas.recv().await,
    }
}
