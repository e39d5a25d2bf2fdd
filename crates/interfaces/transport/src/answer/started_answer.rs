//! Creates the task of a request. The task is durable before any of its answer is sent.

use std::sync::Arc;

use antiphon_core::port::IdempotencyKey;
use antiphon_core::{ModelRef, TaskId};
use antiphon_runtime::{AcceptedTask, AttachedTask, NewTask};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

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
    /// The model that answers.
    pub model: ModelRef,
    /// Watches the task.
    pub watcher: AnswerWatcher,
    /// Cancels the task when dropped; absent for a task that continues without the client.
    pub attached: Option<AttachedTask>,
}

/// The idempotency key of a request, and whether its task continues without the client.
#[derive(Debug, Clone)]
pub struct Continuation {
    /// The key.
    pub key: Option<IdempotencyKey>,
    /// Whether the task continues when the client disconnects.
    pub continues: bool,
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
        Ok(Self { key, continues })
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
        let Continuation { key, continues } = continuation;
        let orchestrator = state.deps.orchestrator.clone();
        let payer = caller.payer();
        if let Err(error) = orchestrator.check_budget(payer.as_deref(), key.as_ref()).await {
            return Err(AnswerError::of(error).await);
        }
        let provenance = caller.principal().provenance();
        let task = NewTask { key, payer, provenance, ..task };
        let (accepted, mut attached) = match orchestrator.invoke_attached(task).await {
            Ok(accepted) => accepted,
            Err(error) => return Err(AnswerError::of(error).await),
        };
        let (follower, deltas) = (attached.take_follower(), attached.take_deltas());
        let attached = if continues {
            attached.detach();
            None
        } else {
            Some(attached)
        };
        // Only a new task joins the trace of its request.
        let AcceptedTask { task_id, deduplicated } = accepted;
        if !deduplicated {
            state.trace(headers, &task_id);
        }
        let watcher = AnswerWatcher::new(&orchestrator, task_id.clone(), follower, deltas);
        Ok(Self { task_id, model, watcher, attached })
    }
}
