//! An answer on its way to the client: whole, or piece by piece. A client that goes away takes its task
//! with it, unless it asked that the task goes on.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::ErrorCode;
use antiphon_runtime::AttachedTask;
use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;

use super::answer::{Letterhead, call_delta};
use super::canonical;
use super::refusal::{Refusal, Shape};
use super::watch::{Ending, Heard, Watch};
use crate::api_error::ApiError;
use crate::room::AppState;

/// An answer on its way.
pub(crate) struct Reply {
    pub(crate) room: Arc<AppState>,
    pub(crate) shape: Shape,
    pub(crate) head: Letterhead,
    pub(crate) include_usage: bool,
    pub(crate) watch: Watch,
    /// Nobody attends to a task that goes on by itself.
    pub(crate) attended: Option<AttachedTask>,
    /// What was said so far.
    pub(crate) text: String,
}

impl Reply {
    /// How long a failure may still have a status of its own. Then the answer begins, so that it is
    /// not given up as one that takes too long.
    fn patience(&self) -> Duration {
        self.room.doors.limits.answer_wait / 4 * 3
    }

    /// The whole answer.
    pub(crate) async fn whole(mut self) -> Response {
        match tokio::time::timeout(self.patience(), self.collect()).await {
            Ok(Ok(body)) => axum::Json(body).into_response(),
            Ok(Err(refusal)) => refusal.into_response(self.shape),
            Err(_) => {
                let body = Body::from_stream(stream::unfold(Some(self), late));
                ([(CONTENT_TYPE, "application/json")], body).into_response()
            }
        }
    }

    /// Hears everything. Cancel safe.
    async fn collect(&mut self) -> Result<Value, Refusal> {
        loop {
            match self.next().await? {
                Heard::Text(text) => self.text.push_str(&text),
                Heard::End(ending) => return Ok(self.body(&ending)),
            }
        }
    }

    fn body(&self, ending: &Ending) -> Value {
        match self.shape {
            Shape::OpenAi => self.head.whole(&self.text, ending),
            Shape::Canonical => {
                let Ending { calls, usage, .. } = ending;
                json!(canonical::response(&self.head.model, &self.text, calls, *usage))
            }
        }
    }

    /// What comes next, unless the server ends.
    async fn next(&mut self) -> Result<Heard, Refusal> {
        let heard = tokio::select! {
            () = self.room.closing.cancelled() => return Err(Refusal::closing()),
            heard = self.watch.next() => heard?,
        };
        if let Heard::End(_) = &heard
            && let Some(attended) = self.attended.take()
        {
            attended.detach();
        }
        Ok(heard)
    }

    /// The answer as it comes.
    pub(crate) async fn streamed(mut self) -> Response {
        let place = Arc::clone(&self.room.streams).try_acquire_owned();
        let Ok(place) = place else {
            let message = "too many streams are open: close one, or come back later";
            let full = ApiError::new(ErrorCode::ServiceUnavailable, message);
            return Refusal::native(full).await.into_response(self.shape);
        };
        let mut lines = VecDeque::new();
        if self.shape == Shape::OpenAi {
            let role = json!({ "role": "assistant", "content": "" });
            lines.push_back(self.head.chunk(&role, None).to_string());
        }
        let over = match tokio::time::timeout(self.patience(), self.next()).await {
            Ok(Err(refusal)) => return refusal.into_response(self.shape),
            Ok(Ok(heard)) => self.lines(heard, &mut lines),
            Err(_) => false,
        };
        let alive = KeepAlive::new().interval(self.room.doors.limits.heartbeat).text("alive");
        let streaming = Streaming { reply: self, lines, over, _place: place };
        let events = stream::unfold(streaming, Streaming::next);
        Sse::new(events).keep_alive(alive).into_response()
    }

    /// The lines that tell this. Says whether they are the last.
    fn lines(&mut self, heard: Heard, lines: &mut VecDeque<String>) -> bool {
        match (heard, self.shape) {
            (Heard::Text(text), Shape::OpenAi) => {
                let delta = json!({ "content": text });
                lines.push_back(self.head.chunk(&delta, None).to_string());
                false
            }
            (Heard::Text(text), Shape::Canonical) => {
                lines.push_back(json!({ "delta": text }).to_string());
                self.text.push_str(&text);
                false
            }
            (Heard::End(ending), Shape::OpenAi) => {
                for (index, call) in ending.calls.iter().enumerate() {
                    lines.push_back(self.head.chunk(&call_delta(index, call), None).to_string());
                }
                lines.push_back(self.head.chunk(&json!({}), Some(ending.reason)).to_string());
                if self.include_usage {
                    lines.push_back(self.head.bill(ending.usage).to_string());
                }
                lines.push_back("[DONE]".to_owned());
                true
            }
            (Heard::End(ending), Shape::Canonical) => {
                lines.push_back(self.body(&ending).to_string());
                lines.push_back("[DONE]".to_owned());
                true
            }
        }
    }
}

/// An answer that is being streamed.
struct Streaming {
    reply: Reply,
    lines: VecDeque<String>,
    over: bool,
    _place: OwnedSemaphorePermit,
}

impl Streaming {
    async fn next(mut self) -> Option<(Result<sse::Event, Infallible>, Self)> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return Some((Ok(sse::Event::default().data(line)), self));
            }
            if self.over {
                return None;
            }
            self.over = match self.reply.next().await {
                Ok(heard) => self.reply.lines(heard, &mut self.lines),
                Err(refusal) => {
                    // Too late for a status: the error is the last line, and there is no `[DONE]`.
                    self.lines.push_back(refusal.body(self.reply.shape).to_string());
                    true
                }
            };
        }
    }
}

/// What is sent of a whole answer that takes long: blanks, which mean nothing in JSON, then the answer
/// or what went wrong.
async fn late(reply: Option<Reply>) -> Option<(Result<Bytes, Infallible>, Option<Reply>)> {
    let mut reply = reply?;
    let heartbeat = reply.room.doors.limits.heartbeat;
    match tokio::time::timeout(heartbeat, reply.collect()).await {
        Err(_) => Some((Ok(Bytes::from_static(b" ")), Some(reply))),
        Ok(ended) => {
            let body = ended.unwrap_or_else(|refusal| refusal.body(reply.shape));
            Some((Ok(Bytes::from(body.to_string())), None))
        }
    }
}
