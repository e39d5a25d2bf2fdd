//! Creates the task of a request. The task is durable before any of its answer is sent.

use std::sync::Arc;

use antiphon_core::port::{Clock, IdempotencyKey, SystemClock};
use antiphon_core::{ModelRef, TaskId};
use antiphon_runtime::{
    AcceptedTask, AttachedTask, NewTask, Orchestrator, OrchestratorError, TaskWatch,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use chrono::{DateTime, Utc};

use super::answer_error::AnswerError;
use super::answer_task::{self, AnswerRequest, AnswerTarget};
use super::answer_watcher::AnswerWatcher;
use crate::access::caller::Caller;
use crate::request::idempotency;
use crate::state::AppState;

const CONTINUE: HeaderName = HeaderName::from_static("x-antiphon-continue");

/// The task of a request, created.
pub struct StartedAnswer {
    /// Id of the task.
    pub task_id: TaskId,
    /// When it was created: a repeated request names the time of the first one.
    pub created_at: DateTime<Utc>,
    /// The model that answers.
    pub model: ModelRef,
    /// Watches the task.
    pub watcher: AnswerWatcher,
    /// Cancels the task when dropped; absent for a task that continues without the client.
    pub attached: Option<AttachedTask>,
}

/// Held while a task is created, also when its client disconnects meanwhile.
pub type CreationLock = tokio::sync::OwnedMutexGuard<()>;

/// The idempotency key of a request, and whether its task continues without the client.
#[derive(Debug)]
pub struct Continuation {
    /// The key.
    pub key: Option<IdempotencyKey>,
    /// Whether the task continues when the client disconnects.
    pub continues: bool,
    /// Released when the journal has the task, or will never have it.
    pub lock: Option<CreationLock>,
}

impl Continuation {
    /// What the headers of a request of `kind` say. A client that sends a key means to come back.
    pub async fn of(caller: &Caller, kind: &str, headers: &HeaderMap) -> Result<Self, AnswerError> {
        let key = match idempotency::key(caller, kind, headers) {
            Ok(key) => key,
            Err(error) => return Err(AnswerError::native(error).await),
        };
        let continues = match headers.get(CONTINUE).map(HeaderValue::as_bytes) {
            None => key.is_some(),
            Some(b"true") => true,
            Some(b"false") => false,
            Some(_) => {
                let message = "`X-Antiphon-Continue` must be `true` or `false`";
                return Err(AnswerError::new(StatusCode::BAD_REQUEST, message));
            }
        };
        Ok(Self { key, continues, lock: None })
    }
}

impl StartedAnswer {
    /// Creates the task of a request.
    pub async fn create(
        state: &Arc<AppState>,
        caller: &Caller,
        headers: &HeaderMap,
        target: AnswerTarget,
        request: AnswerRequest,
        continuation: Continuation,
    ) -> Result<Self, AnswerError> {
        let task = answer_task::task(state, caller, target, request).await?;
        let model = task.model.clone();
        let mut continuation = continuation;
        let key = continuation.key.take();
        let orchestrator = state.deps.orchestrator.clone();
        let payer = caller.payer();
        if let Err(error) = orchestrator.check_budget(payer.as_deref(), key.as_ref()).await {
            return Err(AnswerError::of(error).await);
        }
        let provenance = caller.principal().provenance();
        let task = NewTask { key, payer, provenance, ..task };
        // Otherwise a client that leaves cancels its task, also while the task is created.
        let is_detached = continuation.continues || continuation.lock.is_some();
        let creating = create(orchestrator.clone(), task, continuation);
        let created = if is_detached {
            orchestrator.run_detached(creating).await.and_then(|created| created)
        } else {
            creating.await
        };
        let (accepted, watch, attached) = match created {
            Ok(created) => created,
            Err(error) => return Err(AnswerError::of(error).await),
        };
        // Only a new task joins the trace of its request.
        let AcceptedTask { task_id, deduplicated } = accepted;
        let created_at = if deduplicated {
            match state.summary(&task_id).await {
                Ok(first) => first.created_at,
                Err(error) => return Err(AnswerError::native(error).await),
            }
        } else {
            state.trace(headers, &task_id);
            SystemClock.now()
        };
        let watcher = AnswerWatcher::new(&orchestrator, task_id.clone(), watch);
        Ok(Self { task_id, created_at, model, watcher, attached })
    }
}

type Created = (AcceptedTask, TaskWatch, Option<AttachedTask>);

/// Creates a task, and holds the lock until the journal has it. Dropped afterwards, it cancels a task that does not continue.
async fn create(
    orchestrator: Orchestrator,
    task: NewTask,
    continuation: Continuation,
) -> Result<Created, OrchestratorError> {
    let (accepted, mut attached) = orchestrator.invoke_attached(task).await?;
    drop(continuation.lock);
    let watch = attached.take_watch();
    if continuation.continues {
        attached.detach();
        return Ok((accepted, watch, None));
    }
    Ok((accepted, watch, Some(attached)))
}
