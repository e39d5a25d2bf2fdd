//! The response to a chat request: whole, or streamed. When the client disconnects, its task is canceled,
//! unless the client asked that the task continues.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use antiphon_interface_transport::{AppState, Caller, Reservation, stream_slot};
use antiphon_runtime::AttachedTask;
use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::{Value, json};

use crate::answer_watcher::{AnswerEnd, AnswerPart, AnswerWatcher, ModelAway};
use crate::canonical_messages;
use crate::chat_error::{ChatError, Shape};
use crate::completion_json::{CompletionHeader, call_delta};

/// The response to a chat request.
pub(crate) struct Reply {
    pub(crate) state: Arc<AppState>,
    pub(crate) shape: Shape,
    pub(crate) header: CompletionHeader,
    pub(crate) include_usage: bool,
    pub(crate) watcher: AnswerWatcher,
    /// Cancels the task when dropped; absent for a task that continues without the client.
    pub(crate) attached: Option<AttachedTask>,
    /// Text so far.
    pub(crate) text: String,
}

impl Reply {
    /// How long an error may still set the status. After that the response begins, so that it does not exceed
    /// the time limit of a response.
    fn status_wait(&self) -> Duration {
        self.state.deps.limits.answer_wait / 4 * 3
    }

    /// The whole completion.
    pub(crate) async fn whole(mut self) -> Response {
        match tokio::time::timeout(self.status_wait(), self.collect()).await {
            Ok(Ok(body)) => axum::Json(body).into_response(),
            Ok(Err(error)) => error.into_response(self.shape),
            Err(_) => {
                let body = Body::from_stream(stream::unfold(Some(self), late_chunk));
                ([(CONTENT_TYPE, "application/json")], body).into_response()
            }
        }
    }

    /// Waits for the whole answer. Cancel safe.
    async fn collect(&mut self) -> Result<Value, ChatError> {
        loop {
            match self.next().await? {
                AnswerPart::Text(text) => self.text.push_str(&text),
                AnswerPart::Away(away) if self.is_for_client(&away) => return Err(away.error),
                AnswerPart::Away(ModelAway { superseded_bytes, .. }) => {
                    self.text.truncate(self.text.len().saturating_sub(superseded_bytes));
                }
                AnswerPart::Approval(error) => return Err(error),
                AnswerPart::End(end) => return Ok(self.body(&end)),
            }
        }
    }

    fn body(&self, end: &AnswerEnd) -> Value {
        match self.shape {
            Shape::OpenAi => self.header.whole(&self.text, end),
            Shape::Canonical => {
                json!(canonical_messages::response(&self.header, &self.text, end))
            }
        }
    }

    /// The next part, or an error when the server shuts down.
    async fn next(&mut self) -> Result<AnswerPart, ChatError> {
        let part = tokio::select! {
            () = self.state.closing.cancelled() => return Err(ChatError::closing()),
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
    async fn next_line(&mut self) -> Result<AnswerPart, ChatError> {
        loop {
            match self.next().await? {
                AnswerPart::Away(away)
                    if self.is_for_client(&away) || away.superseded_bytes > 0 =>
                {
                    return Err(away.error);
                }
                AnswerPart::Away(_) => {}
                AnswerPart::Approval(error) => return Err(error),
                part @ (AnswerPart::Text(_) | AnswerPart::End(_)) => return Ok(part),
            }
        }
    }

    /// The completion as server-sent events.
    pub(crate) async fn streamed(mut self, caller: &Caller) -> Response {
        let slot = match stream_slot(&self.state, caller) {
            Ok(slot) => slot,
            Err(error) => return ChatError::native(error).await.into_response(self.shape),
        };
        let mut lines = VecDeque::new();
        if self.shape == Shape::OpenAi {
            let role = json!({ "role": "assistant", "content": "" });
            lines.push_back(self.header.chunk(&role, None).to_string());
        }
        let ended = match tokio::time::timeout(self.status_wait(), self.next_line()).await {
            Ok(Err(error)) => return error.into_response(self.shape),
            Ok(Ok(part)) => self.lines(part, &mut lines),
            Err(_) => false,
        };
        let heartbeat = KeepAlive::new().interval(self.state.deps.limits.heartbeat).text("alive");
        let streaming = Streaming { reply: self, lines, ended, _slot: slot };
        let events = stream::unfold(streaming, Streaming::next);
        Sse::new(events).keep_alive(heartbeat).into_response()
    }

    /// Adds the lines of a part. Returns whether they are the last.
    fn lines(&mut self, part: AnswerPart, lines: &mut VecDeque<String>) -> bool {
        match (part, self.shape) {
            (AnswerPart::Text(text), Shape::OpenAi) => {
                let delta = json!({ "content": text });
                lines.push_back(self.header.chunk(&delta, None).to_string());
                false
            }
            (AnswerPart::Text(text), Shape::Canonical) => {
                lines.push_back(json!({ "delta": text }).to_string());
                self.text.push_str(&text);
                false
            }
            // `next_line` returns neither.
            (AnswerPart::Away(_) | AnswerPart::Approval(_), _) => false,
            (AnswerPart::End(end), Shape::OpenAi) => {
                for (index, call) in end.calls.iter().enumerate() {
                    lines.push_back(self.header.chunk(&call_delta(index, call), None).to_string());
                }
                lines.push_back(self.header.chunk(&json!({}), Some(end.reason)).to_string());
                if self.include_usage {
                    lines.push_back(self.header.usage_chunk(end.usage).to_string());
                }
                lines.push_back("[DONE]".to_owned());
                true
            }
            (AnswerPart::End(end), Shape::Canonical) => {
                lines.push_back(self.body(&end).to_string());
                lines.push_back("[DONE]".to_owned());
                true
            }
        }
    }
}

/// A completion that is being streamed.
struct Streaming {
    reply: Reply,
    lines: VecDeque<String>,
    ended: bool,
    _slot: Reservation,
}

impl Streaming {
    async fn next(mut self) -> Option<(Result<sse::Event, Infallible>, Self)> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return Some((Ok(sse::Event::default().data(line)), self));
            }
            if self.ended {
                return None;
            }
            self.ended = match self.reply.next_line().await {
                Ok(part) => self.reply.lines(part, &mut self.lines),
                Err(error) => {
                    // Too late for a status: the error is the last line, without `[DONE]`.
                    self.lines.push_back(error.body(self.reply.shape).to_string());
                    true
                }
            };
        }
    }
}

/// The next chunk of a whole completion that takes long: blanks, which JSON ignores, then the completion or the
/// error.
async fn late_chunk(reply: Option<Reply>) -> Option<(Result<Bytes, Infallible>, Option<Reply>)> {
    let mut reply = reply?;
    let heartbeat = reply.state.deps.limits.heartbeat;
    match tokio::time::timeout(heartbeat, reply.collect()).await {
        Err(_) => Some((Ok(Bytes::from_static(b" ")), Some(reply))),
        Ok(ended) => {
            let body = ended.unwrap_or_else(|error| error.body(reply.shape));
            Some((Ok(Bytes::from(body.to_string())), None))
        }
    }
}
