//! The response to a request for an answer: whole, or streamed. When the client disconnects, its task is canceled,
//! unless the client asked that the task continues.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use antiphon_runtime::AttachedTask;
use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::Value;

use super::answer_error::AnswerError;
use super::answer_part::{AnswerEnd, AnswerPart, ModelAway};
use super::answer_watcher::AnswerWatcher;
use crate::access::caller::Caller;
use crate::access::shared_limit::Reservation;
use crate::state::AppState;
use crate::stream::event_stream::stream_slot;

/// A server-sent event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamLine {
    /// Its name; none in OpenAI's chat.
    pub event: Option<&'static str>,
    /// Its data.
    pub data: String,
}

/// How an interface writes an answer.
pub trait AnswerFormat: Send + 'static {
    /// Lines at the begin of a stream.
    fn begin(&mut self, lines: &mut VecDeque<StreamLine>);

    /// Takes a part of an answer that is not streamed. What is superseded is forgotten.
    fn collect(&mut self, part: &AnswerPart);

    /// Lines of a part of a stream. The end is the last part.
    fn stream(&mut self, part: AnswerPart, lines: &mut VecDeque<StreamLine>);

    /// The answer, after all of its parts were collected.
    fn whole(&mut self, end: &AnswerEnd) -> Value;

    /// The last lines of a stream that failed.
    fn stream_error(&mut self, error: &AnswerError, lines: &mut VecDeque<StreamLine>);

    /// The body of an error.
    fn error_body(&self, error: &AnswerError) -> Value;

    /// Whether a stream has lines for a part. The status of an error can be set until the first of them.
    fn shows(&self, part: &AnswerPart) -> bool {
        let _ = part;
        true
    }

    /// A line that keeps an idle stream alive; a comment when absent.
    fn heartbeat(&self) -> Option<sse::Event> {
        None
    }
}

/// The response to a request.
pub struct AnswerReply<F> {
    /// The state of the server.
    pub state: Arc<AppState>,
    /// Writes the answer.
    pub format: F,
    /// Watches the task.
    pub watcher: AnswerWatcher,
    /// Cancels the task when dropped; absent for a task that continues without the client.
    pub attached: Option<AttachedTask>,
}

impl<F: AnswerFormat> AnswerReply<F> {
    /// How long an error may still set the status. After that the response begins, so that it does not exceed
    /// the time limit of a response.
    fn status_wait(&self) -> Duration {
        self.state.deps.limits.answer_wait / 4 * 3
    }

    fn refuse(&self, error: &AnswerError) -> Response {
        error.respond(self.format.error_body(error))
    }

    /// The whole answer.
    pub async fn whole(mut self) -> Response {
        match tokio::time::timeout(self.status_wait(), self.collect()).await {
            Ok(Ok(body)) => axum::Json(body).into_response(),
            Ok(Err(error)) => self.refuse(&error),
            Err(_) => {
                let body = Body::from_stream(stream::unfold(Some(self), late_chunk));
                ([(CONTENT_TYPE, "application/json")], body).into_response()
            }
        }
    }

    /// Waits for the whole answer. Cancel safe.
    pub async fn collect(&mut self) -> Result<Value, AnswerError> {
        loop {
            match self.next().await? {
                AnswerPart::Away(away) if self.is_for_client(&away) => return Err(away.error),
                AnswerPart::Approval(error) => return Err(error),
                AnswerPart::End(end) => {
                    let part = AnswerPart::End(end.clone());
                    self.format.collect(&part);
                    return Ok(self.format.whole(&end));
                }
                part @ (AnswerPart::Text(_)
                | AnswerPart::Thinking(_)
                | AnswerPart::Step(_)
                | AnswerPart::Away(_)) => self.format.collect(&part),
            }
        }
    }

    /// The next part, or an error when the server shuts down.
    async fn next(&mut self) -> Result<AnswerPart, AnswerError> {
        let part = tokio::select! {
            () = self.state.closing.cancelled() => return Err(AnswerError::closing()),
            part = self.watcher.next() => part?,
        };
        // A task that waits for a person continues without the client: its decision is not for nothing.
        if let AnswerPart::End(_) | AnswerPart::Approval(_) = &part
            && let Some(attached) = self.attached.take()
        {
            attached.detach();
        }
        Ok(part)
    }

    /// Whether the client waits for an absent model: it gets the failure, and may ask again at any time. A task
    /// that has called tools, or that continues without its client, waits itself.
    fn is_for_client(&self, away: &ModelAway) -> bool {
        self.attached.is_some() && !away.has_acted
    }

    /// The next part of a stream. Text that was streamed cannot be taken back: when it is superseded, the stream
    /// ends with the failure.
    async fn next_streamed(&mut self) -> Result<AnswerPart, AnswerError> {
        loop {
            match self.next().await? {
                AnswerPart::Away(away)
                    if self.is_for_client(&away) || away.superseded_bytes > 0 =>
                {
                    return Err(away.error);
                }
                AnswerPart::Approval(error) => return Err(error),
                part @ (AnswerPart::Text(_)
                | AnswerPart::Thinking(_)
                | AnswerPart::Step(_)
                | AnswerPart::Away(_)
                | AnswerPart::End(_)) => {
                    if self.format.shows(&part) {
                        return Ok(part);
                    }
                }
            }
        }
    }

    /// Adds the lines of a part. Returns whether they are the last.
    fn stream(&mut self, part: AnswerPart, lines: &mut VecDeque<StreamLine>) -> bool {
        let is_last = matches!(part, AnswerPart::End(_));
        self.format.stream(part, lines);
        is_last
    }

    /// The answer as server-sent events.
    pub async fn streamed(mut self, caller: &Caller) -> Response {
        let slot = match stream_slot(&self.state, caller) {
            Ok(slot) => slot,
            Err(error) => {
                let error = AnswerError::native(error).await;
                return self.refuse(&error);
            }
        };
        let mut lines = VecDeque::new();
        self.format.begin(&mut lines);
        let ended = match tokio::time::timeout(self.status_wait(), self.next_streamed()).await {
            Ok(Err(error)) => return self.refuse(&error),
            Ok(Ok(part)) => self.stream(part, &mut lines),
            Err(_) => false,
        };
        let heartbeat = KeepAlive::new().interval(self.state.deps.limits.heartbeat);
        let heartbeat = match self.format.heartbeat() {
            Some(event) => heartbeat.event(event),
            None => heartbeat.text("alive"),
        };
        let streaming = Streaming { reply: self, lines, ended, _slot: slot };
        let events = stream::unfold(streaming, Streaming::next);
        Sse::new(events).keep_alive(heartbeat).into_response()
    }
}

/// An answer that is being streamed.
struct Streaming<F> {
    reply: AnswerReply<F>,
    lines: VecDeque<StreamLine>,
    ended: bool,
    _slot: Reservation,
}

impl<F: AnswerFormat> Streaming<F> {
    async fn next(mut self) -> Option<(Result<sse::Event, Infallible>, Self)> {
        loop {
            if let Some(StreamLine { event, data }) = self.lines.pop_front() {
                let line = event
                    .map_or_else(sse::Event::default, |event| sse::Event::default().event(event));
                let line = line.data(data);
                return Some((Ok(line), self));
            }
            if self.ended {
                return None;
            }
            self.ended = match self.reply.next_streamed().await {
                Ok(part) => self.reply.stream(part, &mut self.lines),
                Err(error) => {
                    // Too late for a status.
                    self.reply.format.stream_error(&error, &mut self.lines);
                    true
                }
            };
        }
    }
}

/// The next chunk of a whole answer that takes long: blanks, which JSON ignores, then the answer or the error.
async fn late_chunk<F: AnswerFormat>(
    reply: Option<AnswerReply<F>>,
) -> Option<(Result<Bytes, Infallible>, Option<AnswerReply<F>>)> {
    let mut reply = reply?;
    let heartbeat = reply.state.deps.limits.heartbeat;
    match tokio::time::timeout(heartbeat, reply.collect()).await {
        Err(_) => Some((Ok(Bytes::from_static(b" ")), Some(reply))),
        Ok(ended) => {
            let body = ended.unwrap_or_else(|error| reply.format.error_body(&error));
            Some((Ok(Bytes::from(body.to_string())), None))
        }
    }
}
