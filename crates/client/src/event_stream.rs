//! Events as they come, each once and in order, over any number of connections.
//!
//! | the stream                        | then                                                       |
//! |-----------------------------------|------------------------------------------------------------|
//! | breaks, or is silent for too long | connects again after the last event, if the policy allows  |
//! | repeats an event                  | skips it                                                   |
//! | of a task skips an event          | connects again after the last event                        |
//! | of a task is past its last event  | ends: `None`                                               |
//! | of the whole journal skips one    | the same                                                   |
//! | reports that it is behind         | goes on                                                    |
//! | brings something unreadable       | fails with a protocol error                                |
//! | is no stream of events            | fails with a protocol error                                |

use std::collections::VecDeque;
use std::num::NonZeroUsize;

use antiphon_api::{JournalEventQuery, TaskEventQuery};
use antiphon_core::{Event, Position, Seq, TaskId};
use backon::ExponentialBackoff;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Method, Response, StatusCode};
use sse_core::{MessageEvent, SseDecoder, SseEvent};

use crate::client::{Client, Query};
use crate::error::ClientError;
use crate::live_delta::StreamItem;
use crate::response;
use crate::retry_policy::RetryPolicy;

/// Largest event, in bytes. A larger one is a protocol error.
pub const EVENT_BYTES_MAX: usize = 32 * 1024 * 1024;

const EVENT_LIMIT: NonZeroUsize = NonZeroUsize::new(EVENT_BYTES_MAX).unwrap();

/// Events of a task or of the journal.
pub struct EventStream {
    items: ItemStream,
}

/// Events, and live deltas if they are asked for.
pub(crate) struct ItemStream {
    client: Client,
    scope: Scope,
    deltas: Deltas,
    retry: RetryPolicy,
    /// Pauses that are left until the next event.
    waits: ExponentialBackoff,
    state: State,
    /// What arrived and was not delivered.
    ready: VecDeque<StreamItem>,
}

/// Whether live deltas are delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deltas {
    Included,
    Excluded,
}

/// Which events, and where the stream is.
pub(crate) enum Scope {
    Task { task_id: TaskId, after: Seq, reader: Reader },
    Journal { query: JournalEventQuery },
}

/// Who reads the events of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    Anyone,
    /// The client that created the task and follows it.
    Owner,
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
        let scope = Scope::Task { task_id, after, reader: Reader::Anyone };
        EventStream { items: ItemStream::new(self.clone(), scope, Deltas::Excluded, retry) }
    }

    /// The same for the client that created the task with [`CreateTask::followed`](antiphon_api::CreateTask): a task
    /// that waits for it since a restart of the server goes on.
    pub fn own_task_events(&self, task_id: TaskId, after: Seq, retry: RetryPolicy) -> EventStream {
        let scope = Scope::Task { task_id, after, reader: Reader::Owner };
        EventStream { items: ItemStream::new(self.clone(), scope, Deltas::Excluded, retry) }
    }

    /// Events of the journal. Without `after` they begin with the next one: then a connection that breaks
    /// before the first event is not made again, because events may be missing. The stream does not end
    /// by itself. Live deltas are not delivered.
    pub fn journal_events(&self, query: JournalEventQuery, retry: RetryPolicy) -> EventStream {
        let scope = Scope::Journal { query: JournalEventQuery { deltas: false, ..query } };
        EventStream { items: ItemStream::new(self.clone(), scope, Deltas::Excluded, retry) }
    }
}

impl EventStream {
    /// The next event, or `None` after the last one of a task. Cancel safe: an event that was not
    /// returned is returned by the next call.
    pub async fn next(&mut self) -> Result<Option<Event>, ClientError> {
        loop {
            match self.items.next().await? {
                Some(StreamItem::Event(event)) => return Ok(Some(*event)),
                Some(StreamItem::Delta(_)) => {}
                None => return Ok(None),
            }
        }
    }

    /// The events that have arrived, at least one; empty after the last one of a task. Cancel safe.
    pub async fn next_batch(&mut self) -> Result<Vec<Event>, ClientError> {
        let Some(first) = self.next().await? else { return Ok(Vec::new()) };
        let mut batch = vec![first];
        batch.extend(self.items.ready.drain(..).filter_map(|item| match item {
            StreamItem::Event(event) => Some(*event),
            StreamItem::Delta(_) => None,
        }));
        Ok(batch)
    }
}

impl ItemStream {
    pub(crate) fn new(client: Client, scope: Scope, deltas: Deltas, retry: RetryPolicy) -> Self {
        let (waits, ready) = (retry.waits(), VecDeque::new());
        Self { client, scope, deltas, retry, waits, state: State::Disconnected, ready }
    }

    /// The next item, or `None` after the last event of a task. Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<Option<StreamItem>, ClientError> {
        self.fill().await?;
        Ok(self.ready.pop_front())
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
                ClientError::NoConnection { reason } | ClientError::Unreachable { reason } => {
                    ClientError::StreamLost { reason }
                }
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
        let deltas = self.deltas == Deltas::Included;
        let request = match &self.scope {
            Scope::Task { task_id, reader, .. } => {
                let path = ["v1", "tasks", task_id.as_str(), "events"];
                let owner = *reader == Reader::Owner;
                let query = Query::of(&TaskEventQuery { after: None, deltas, owner })?;
                self.client.request(Method::GET, &path, query)?
            }
            Scope::Journal { query } => {
                let query = JournalEventQuery { after: None, deltas, ..query.clone() };
                let query = Query::of(&query)?;
                self.client.request(Method::GET, &["v1", "events"], query)?
            }
        };
        let mut request = request.header(ACCEPT, "text/event-stream");
        if let Some(last) = self.scope.last_event_id() {
            request = request.header("last-event-id", last);
        }
        // The headers come at once, and an error as a whole; only the body of a stream lasts.
        let opened = async {
            let sent = request.send().await;
            response::success(sent.map_err(|error| ClientError::unreachable(&error))?).await
        };
        let opened = tokio::time::timeout(self.client.timeouts().response, opened).await;
        let silent = |_| ClientError::Unreachable { reason: "it does not answer".to_owned() };
        let response = opened.map_err(silent)??;
        if response.status() == StatusCode::NO_CONTENT {
            self.state = State::Ended;
            return Ok(());
        }
        if !is_event_stream(&response) {
            let reason = "the response is not a stream of events: is it a server of this version?";
            return Err(ClientError::protocol(reason));
        }
        let decoder = SseDecoder::with_limit(EVENT_LIMIT);
        self.state = State::Connected(Box::new(Connection { response, decoder }));
        Ok(())
    }

    /// Takes the events that are new, in order, and the deltas between them.
    fn accept(&mut self, items: Vec<StreamItem>) -> Result<(), ClientError> {
        for item in items {
            let event = match item {
                StreamItem::Event(event) => event,
                StreamItem::Delta(_) if self.deltas == Deltas::Excluded => continue,
                StreamItem::Delta(_) => {
                    self.ready.push_back(item);
                    continue;
                }
            };
            if !self.scope.advance(&event)? {
                continue;
            }
            self.waits = self.retry.waits();
            let is_last = matches!(self.scope, Scope::Task { .. }) && event.body.ends_task();
            self.ready.push_back(StreamItem::Event(event));
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
            Self::Task { task_id, after, .. } => {
                if event.task_id != *task_id {
                    return Err(ClientError::protocol("an event of another task arrived"));
                }
                if event.seq <= *after {
                    return Ok(false);
                }
                if event.seq.0 != after.0 + 1 {
                    return Err(missing(after.0, event.seq.0));
                }
                *after = event.seq;
            }
            Self::Journal { query } => {
                let after = query.after.unwrap_or(Position(0));
                if event.position <= after {
                    return Ok(false);
                }
                let is_whole = JournalEventQuery { after: None, deltas: false, ..query.clone() }
                    == JournalEventQuery::default();
                if is_whole && query.after.is_some() && event.position.0 != after.0 + 1 {
                    return Err(missing(after.0, event.position.0));
                }
                query.after = Some(event.position);
            }
        }
        Ok(true)
    }
}

impl Connection {
    /// The items of the next bytes that hold any. Cancel safe: bytes that have not arrived stay.
    async fn read(&mut self, client: &Client) -> Result<Vec<StreamItem>, ClientError> {
        let silence = client.timeouts().silence;
        loop {
            let chunk = tokio::time::timeout(silence, self.response.chunk()).await;
            let silent = |_| lost("nothing was received for too long");
            let broken = |error| ClientError::unreachable(&error);
            let Some(mut chunk) = chunk.map_err(silent)?.map_err(broken)? else {
                return Err(lost("the server closed the connection"));
            };
            let mut items = Vec::new();
            while let Some(decoded) = self.decoder.next(&mut chunk) {
                match decoded {
                    Ok(SseEvent::Message(message)) => items.extend(parse(&message)?),
                    Ok(SseEvent::Retry(_)) => {}
                    Err(_) => {
                        let reason = format!("an event has more than {EVENT_BYTES_MAX} bytes");
                        return Err(ClientError::protocol(reason));
                    }
                }
            }
            if !items.is_empty() {
                return Ok(items);
            }
        }
    }
}

fn lost(reason: &str) -> ClientError {
    ClientError::StreamLost { reason: reason.to_owned() }
}

fn missing(after: u64, next: u64) -> ClientError {
    let reason = format!("events between {after} and {next} are missing");
    ClientError::StreamLost { reason }
}

fn is_event_stream(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("text/event-stream")
}

/// An item of the stream. A server of a later version may send events that this one does not know: that is
/// an error, because nothing of the journal may be left out.
fn parse(message: &MessageEvent) -> Result<Option<StreamItem>, ClientError> {
    match &*message.event {
        // A delta of a later version is no loss: the event with the whole text follows.
        "delta" => Ok(serde_json::from_str(&message.data).ok().map(StreamItem::Delta)),
        // The server reports that the client is slow. The stream goes on where it is.
        "lag" => Ok(None),
        _ => {
            let event = serde_json::from_str(&message.data);
            let unreadable =
                |error| ClientError::protocol(format!("an event cannot be read: {error}"));
            Ok(Some(StreamItem::Event(Box::new(event.map_err(unreadable)?))))
        }
    }
}
