//! Events as they come, each once and in order, over any number of connections.
//!
//! | the stream                        | then                                                       |
//! |-----------------------------------|------------------------------------------------------------|
//! | breaks, or is silent for too long | connects again after the last event, if the policy allows  |
//! | repeats an event                  | skips it                                                   |
//! | of a task skips an event          | connects again after the last event                        |
//! | of a task is past its last event  | ends: `None`                                               |
//! | brings something unreadable       | fails with a protocol error                                |

use std::collections::VecDeque;
use std::num::NonZeroUsize;

use antiphon_api::{JournalEventQuery, TaskEventQuery};
use antiphon_core::{Event, Position, Seq, TaskId};
use backon::ExponentialBackoff;
use reqwest::header::ACCEPT;
use reqwest::{Method, Response, StatusCode};
use sse_core::{SseDecoder, SseEvent};

use crate::client::{Client, Query};
use crate::error::ClientError;
use crate::response;
use crate::retry_policy::RetryPolicy;

/// Largest event, in bytes. A larger one is a protocol error.
pub const EVENT_BYTES_MAX: usize = 32 * 1024 * 1024;

const EVENT_LIMIT: NonZeroUsize = NonZeroUsize::new(EVENT_BYTES_MAX).unwrap();

/// Events of a task or of the journal.
pub struct EventStream {
    client: Client,
    scope: Scope,
    retry: RetryPolicy,
    /// Pauses that are left until the next event.
    waits: ExponentialBackoff,
    state: State,
    /// Events that arrived and were not delivered.
    ready: VecDeque<Event>,
}

/// Which events, and where the stream is.
enum Scope {
    Task { task_id: TaskId, after: Seq },
    Journal { query: JournalEventQuery },
}

enum State {
    Disconnected,
    Connected(Box<Connection>),
    Ended,
}

struct Connection {
    response: Response,
    decoder: SseDecoder,
}

impl Client {
    /// Events of a task after `after`, which is 0 for all of them. The stream ends after the terminal
    /// event of the task. Nothing is sent before the first event is asked for.
    pub fn task_events(&self, task_id: TaskId, after: Seq, retry: RetryPolicy) -> EventStream {
        EventStream::new(self.clone(), Scope::Task { task_id, after }, retry)
    }

    /// Events of the journal. Without `after` they begin with the next one: then a connection that breaks
    /// before the first event is not made again, because events may be missing. The stream does not end
    /// by itself. Live deltas are not delivered.
    pub fn journal_events(&self, query: JournalEventQuery, retry: RetryPolicy) -> EventStream {
        let query = JournalEventQuery { deltas: false, ..query };
        EventStream::new(self.clone(), Scope::Journal { query }, retry)
    }
}

impl EventStream {
    fn new(client: Client, scope: Scope, retry: RetryPolicy) -> Self {
        let (waits, ready) = (retry.waits(), VecDeque::new());
        Self { client, scope, retry, waits, state: State::Disconnected, ready }
    }

    /// The next event, or `None` after the last one of a task. Cancel safe: an event that was not
    /// returned is returned by the next call.
    pub async fn next(&mut self) -> Result<Option<Event>, ClientError> {
        self.fill().await?;
        Ok(self.ready.pop_front())
    }

    /// The events that have arrived, at least one; empty after the last one of a task. Cancel safe.
    pub async fn next_batch(&mut self) -> Result<Vec<Event>, ClientError> {
        self.fill().await?;
        Ok(self.ready.drain(..).collect())
    }

    /// Waits until an event is ready, or the stream has ended.
    async fn fill(&mut self) -> Result<(), ClientError> {
        while self.ready.is_empty() {
            let failed = match &mut self.state {
                State::Ended => return Ok(()),
                State::Disconnected => self.connect().await.err(),
                State::Connected(connection) => match connection.read(&self.client).await {
                    Ok(events) => self.accept(events).err(),
                    Err(error) => Some(error),
                },
            };
            if let Some(error) = failed {
                self.retry(error).await?;
            }
        }
        Ok(())
    }

    /// Waits before the next connection, or returns the error that no connection helps against.
    async fn retry(&mut self, error: ClientError) -> Result<(), ClientError> {
        self.state = State::Disconnected;
        if !error.is_transient() {
            return Err(error);
        }
        let wait = self.waits.next().filter(|_| self.scope.last_event_id().is_some());
        let Some(wait) = wait else {
            return Err(match error {
                ClientError::Unreachable { reason } => ClientError::StreamLost { reason },
                // The server's own words count.
                ClientError::Refused { .. }
                | ClientError::StreamLost { .. }
                | ClientError::Unauthorized
                | ClientError::Protocol { .. } => error,
            });
        };
        tracing::debug!(%error, "connects to the event stream again");
        tokio::time::sleep(wait).await;
        Ok(())
    }

    async fn connect(&mut self) -> Result<(), ClientError> {
        let request = match &self.scope {
            Scope::Task { task_id, .. } => {
                let path = ["v1", "tasks", task_id.as_str(), "events"];
                let query = Query::of(&TaskEventQuery::default())?;
                self.client.request(Method::GET, &path, query)?
            }
            Scope::Journal { query } => {
                let query = Query::of(&JournalEventQuery { after: None, ..query.clone() })?;
                self.client.request(Method::GET, &["v1", "events"], query)?
            }
        };
        let mut request = request.header(ACCEPT, "text/event-stream");
        if let Some(last) = self.scope.last_event_id() {
            request = request.header("last-event-id", last);
        }
        // The headers come at once; only the body lasts.
        let sent = tokio::time::timeout(self.client.timeouts().response, request.send()).await;
        let silent = |_| ClientError::Unreachable { reason: "it does not answer".to_owned() };
        let response = sent.map_err(silent)?.map_err(|error| ClientError::unreachable(&error))?;
        let response = response::success(response).await?;
        if response.status() == StatusCode::NO_CONTENT {
            self.state = State::Ended;
            return Ok(());
        }
        let decoder = SseDecoder::with_limit(EVENT_LIMIT);
        self.state = State::Connected(Box::new(Connection { response, decoder }));
        Ok(())
    }

    /// Takes the events that are new, in order.
    fn accept(&mut self, events: Vec<Event>) -> Result<(), ClientError> {
        for event in events {
            if !self.scope.advance(&event)? {
                continue;
            }
            self.waits = self.retry.waits();
            let is_last = matches!(self.scope, Scope::Task { .. }) && event.body.ends_task();
            self.ready.push_back(event);
            if is_last {
                self.state = State::Ended;
                break;
            }
        }
        Ok(())
    }
}

impl Scope {
    fn last_event_id(&self) -> Option<String> {
        match self {
            Self::Task { after, .. } => Some(after.to_string()),
            Self::Journal { query } => query.after.map(|after| after.to_string()),
        }
    }

    /// Moves to an event. `false` when the stream has been there.
    fn advance(&mut self, event: &Event) -> Result<bool, ClientError> {
        match self {
            Self::Task { task_id, after } => {
                if event.task_id != *task_id {
                    return Err(ClientError::protocol("an event of another task arrived"));
                }
                if event.seq <= *after {
                    return Ok(false);
                }
                if event.seq.0 != after.0 + 1 {
                    let reason = format!("events between {after} and {} are missing", event.seq);
                    return Err(ClientError::StreamLost { reason });
                }
                *after = event.seq;
            }
            Self::Journal { query } => {
                if event.position <= query.after.unwrap_or(Position(0)) {
                    return Ok(false);
                }
                query.after = Some(event.position);
            }
        }
        Ok(true)
    }
}

impl Connection {
    /// The events of the next bytes that hold any. Cancel safe: bytes that have not arrived stay.
    async fn read(&mut self, client: &Client) -> Result<Vec<Event>, ClientError> {
        let silence = client.timeouts().silence;
        loop {
            let chunk = tokio::time::timeout(silence, self.response.chunk()).await;
            let silent = |_| lost("nothing was received for too long");
            let broken = |error| ClientError::unreachable(&error);
            let Some(mut chunk) = chunk.map_err(silent)?.map_err(broken)? else {
                return Err(lost("the server closed the connection"));
            };
            let mut events = Vec::new();
            while let Some(decoded) = self.decoder.next(&mut chunk) {
                match decoded {
                    Ok(SseEvent::Message(message)) => events.push(parse(&message.data)?),
                    Ok(SseEvent::Retry(_)) => {}
                    Err(_) => {
                        let reason = format!("an event has more than {EVENT_BYTES_MAX} bytes");
                        return Err(ClientError::protocol(reason));
                    }
                }
            }
            if !events.is_empty() {
                return Ok(events);
            }
        }
    }
}

fn lost(reason: &str) -> ClientError {
    ClientError::StreamLost { reason: reason.to_owned() }
}

/// An event. A server of a later version may send types that this one does not know.
fn parse(data: &str) -> Result<Event, ClientError> {
    serde_json::from_str(data)
        .map_err(|error| ClientError::protocol(format!("an event cannot be read: {error}")))
}
