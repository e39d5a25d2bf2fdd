//! The reply to an operation: a value, a task that is waited for, or a stream of updates.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use a2a::{StreamResponse, Task};
use antiphon_core::TaskId;
use antiphon_interface_transport::{AppState, Caller, Reservation, stream_slot};
use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::{Value, json};

use crate::bindings::Binding;
use crate::error::A2aError;
use crate::task_view::{self, Extent};
use crate::watcher::Watcher;

/// The reply to an operation.
pub(crate) enum Reply {
    Value(Value),
    /// The task when it has ended or waits for a person.
    Awaited(Box<AwaitedTask>),
    Updates(Box<Updates>),
}

/// A task that a client waits for.
pub(crate) struct AwaitedTask {
    pub(crate) state: Arc<AppState>,
    pub(crate) task_id: TaskId,
    pub(crate) extent: Extent,
    pub(crate) watcher: Watcher,
}

/// The updates of a task, the task itself first.
pub(crate) struct Updates {
    pub(crate) state: Arc<AppState>,
    pub(crate) task: Option<Task>,
    pub(crate) watcher: Watcher,
}

impl Reply {
    pub(crate) async fn into_response(self, binding: Binding, caller: &Caller) -> Response {
        match self {
            Self::Value(value) => binding.value(value),
            Self::Awaited(awaited) => awaited.into_response(binding).await,
            Self::Updates(updates) => match stream_slot(&updates.state, caller) {
                Ok(slot) => updates.into_response(binding, slot),
                Err(error) => binding.error(&error.into()),
            },
        }
    }
}

impl AwaitedTask {
    /// Waits for the task. An error may set the status for so long; after that the response begins, so that it does
    /// not exceed the time limit of a response.
    async fn into_response(mut self: Box<Self>, binding: Binding) -> Response {
        let status_wait: Duration = self.state.deps.limits.answer_wait / 4 * 3;
        match tokio::time::timeout(status_wait, self.collect()).await {
            Ok(Ok(value)) => binding.value(value),
            Ok(Err(error)) => binding.error(&error),
            Err(_) => {
                let kind = [(CONTENT_TYPE, binding.content_type())];
                let chunks = stream::unfold(Some((self, binding)), late_chunk);
                (kind, Body::from_stream(chunks)).into_response()
            }
        }
    }

    /// Cancel safe.
    async fn collect(&mut self) -> Result<Value, A2aError> {
        let closing = self.state.closing.clone();
        loop {
            let update = tokio::select! {
                () = closing.cancelled() => return Err(A2aError::stopping()),
                update = self.watcher.next() => update?,
            };
            if update.is_none() {
                break;
            }
        }
        let summary = self.state.summary(&self.task_id).await?;
        let task = task_view::task(&self.state.deps.orchestrator, &summary, self.extent).await?;
        Ok(json!({ "task": task }))
    }
}

type Late = Option<(Box<AwaitedTask>, Binding)>;

/// The next chunk of a response that takes long: blanks, which JSON ignores, then the task or the error.
async fn late_chunk(late: Late) -> Option<(Result<Bytes, Infallible>, Late)> {
    let (mut awaited, binding) = late?;
    let heartbeat = awaited.state.deps.limits.heartbeat;
    match tokio::time::timeout(heartbeat, awaited.collect()).await {
        Err(_) => Some((Ok(Bytes::from_static(b" ")), Some((awaited, binding)))),
        Ok(ended) => {
            let body = match ended {
                Ok(value) => binding.wrap(value),
                Err(error) => binding.wrap_error(&error),
            };
            Some((Ok(Bytes::from(body.to_string())), None))
        }
    }
}

impl Updates {
    fn into_response(self: Box<Self>, binding: Binding, slot: Reservation) -> Response {
        let heartbeat = KeepAlive::new().interval(self.state.deps.limits.heartbeat).text("alive");
        let streaming = (Some(self), binding, slot);
        let events = stream::unfold(streaming, |(updates, binding, slot)| async move {
            let mut updates = updates?;
            let (line, rest) = match updates.next().await {
                Ok(Some(response)) => (binding.wrap(json!(response)), Some(updates)),
                Ok(None) => return None,
                Err(error) => (binding.wrap_error(&error), None),
            };
            let event = sse::Event::default().data(line.to_string());
            Some((Ok::<_, Infallible>(event), (rest, binding, slot)))
        });
        Sse::new(events).keep_alive(heartbeat).into_response()
    }

    async fn next(&mut self) -> Result<Option<StreamResponse>, A2aError> {
        if let Some(task) = self.task.take() {
            return Ok(Some(StreamResponse::Task(task)));
        }
        tokio::select! {
            // A client comes back with `SubscribeToTask`.
            () = self.state.closing.cancelled() => Ok(None),
            update = self.watcher.next() => Ok(update?.map(|update| update.response)),
        }
    }
}
