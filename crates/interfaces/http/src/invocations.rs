//! Invocations at the top: a request to dispatch 1..N targets, each of which becomes a task.
//!
//! All targets are looked at before any task is made: either every one could be accepted, or nothing
//! has happened. There is no parent here, so nothing can be inherited from one or handed over to it.
//! A repeated `Idempotency-Key` is the same tasks, also after a restart in the middle. Once the first is
//! made, the others are too, also when the client leaves.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use aide::axum::ApiRouter;
use aide::axum::routing::post_with;
use antiphon_core::port::IdempotencyKey;
use antiphon_core::{
    AgentResult, ContextScope, ErrorCode, Invocation, InvocationResult, Join, TaskId,
    ValidInvocation,
};
use antiphon_runtime::{NewTask, Orchestrator, OrchestratorError};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::api_error::ApiError;
use crate::caller::Caller;
use crate::idempotency;
use crate::json::Json;
use crate::named::Asked;
use crate::openapi::{Tag, Telling};
use crate::rest::REST_WAIT_S_MAX;
use crate::room::AppState;
use crate::target;

/// Targets of one invocation, at most.
pub const INVOCATION_TARGETS_MAX: usize = 256;

/// Where requests are kept apart from others.
const KIND: &str = "http-invocation";

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let invoke = post_with(invoke, |route| {
        let summary = "Dispatches targets, each of which becomes a task.";
        let route = route.told("invoke", Tag::Tasks, summary).keyed().traced();
        let route = route.fails(&[404, 409, 422]);
        let route = route.response_with::<200, axum::Json<InvocationResult>, _>(|told| {
            told.description("What became of all of them.")
        });
        route.response_with::<202, axum::Json<InvocationResult>, _>(|told| {
            told.description("Their tasks: they are detached, or have not ended in time.")
        })
    });
    ApiRouter::new().api_route("/v1/invocations", invoke)
}

/// How long to wait for results.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "InvocationWait")]
pub(crate) struct WaitQuery {
    /// Seconds; as long as there may be when absent.
    #[schemars(range(max = REST_WAIT_S_MAX))]
    wait_s: Option<NonZeroU32>,
}

/// What is kept of an invocation under its key.
#[derive(Serialize, Deserialize)]
struct Kept {
    task_ids: Vec<TaskId>,
}

async fn invoke(
    State(room): State<Arc<AppState>>,
    caller: Caller,
    Asked(query): Asked<WaitQuery>,
    headers: HeaderMap,
    Json(invocation): Json<Invocation>,
) -> Result<(StatusCode, axum::Json<InvocationResult>), ApiError> {
    let wait_s = query.wait_s.map_or(REST_WAIT_S_MAX, NonZeroU32::get);
    if wait_s > REST_WAIT_S_MAX {
        return Err(ApiError::invalid(format!("`wait_s`: 1 to {REST_WAIT_S_MAX}")));
    }
    let own_key = idempotency::own_key(&headers)?;
    let invocation = checked(invocation)?;
    let join = invocation.get().join;
    let dispatching = Dispatching { room: Arc::clone(&room), caller, headers };
    let task_ids = dispatching.once(invocation, own_key).await?;
    let patience = Duration::from_secs(wait_s.into());
    let results = match join {
        // Any and quorum were refused.
        Join::Detached | Join::Any | Join::Quorum { .. } => None,
        Join::Single | Join::All => tokio::select! {
            () = room.closing.cancelled() => None,
            waited = tokio::time::timeout(patience, results(&room.doors.orchestrator, &task_ids)) => {
                waited.ok().transpose()?.flatten()
            }
        },
    };
    Ok(match results {
        None => (StatusCode::ACCEPTED, axum::Json(InvocationResult::TaskIds { task_ids })),
        Some(results) => (StatusCode::OK, axum::Json(joined(join, results))),
    })
}

fn joined(join: Join, mut results: Vec<AgentResult>) -> InvocationResult {
    match results.pop() {
        Some(result) if join == Join::Single => InvocationResult::Scalar { result },
        last => InvocationResult::Vector { results: results.into_iter().chain(last).collect() },
    }
}

/// The one check of what is asked for as a whole.
fn checked(invocation: Invocation) -> Result<ValidInvocation, ApiError> {
    let refuse = |message: String| Err(ApiError::new(ErrorCode::DomainViolation, message));
    let got = invocation.targets.len();
    if got > INVOCATION_TARGETS_MAX {
        let message = format!("`targets`: {INVOCATION_TARGETS_MAX} at most, got {got}");
        return Err(ApiError::invalid(message));
    }
    let word = match invocation.context {
        ContextScope::Independent => None,
        ContextScope::Inherited => Some("inherited"),
        ContextScope::Shared => Some("shared"),
    };
    if let Some(word) = word {
        return refuse(format!(
            "context `{word}`: there is no task above an invocation that comes in here, so there is \
             nothing to go on with: use `independent`, or POST /v1/tasks with a `session_id`"
        ));
    }
    match invocation.join {
        Join::Single | Join::All | Join::Detached => {}
        join @ (Join::Any | Join::Quorum { .. }) => {
            let join = join.as_str();
            return refuse(format!(
                "join `{join}`: only an agent joins so; here `single`, `all` or `detached`"
            ));
        }
    }
    invocation.validate().or_else(|error| refuse(error.to_string()))
}

/// Somebody who dispatches.
struct Dispatching {
    room: Arc<AppState>,
    caller: Caller,
    headers: HeaderMap,
}

impl Dispatching {
    /// The tasks of an invocation, those that it had before if it was asked for under this name.
    async fn once(
        self,
        invocation: ValidInvocation,
        own_key: Option<String>,
    ) -> Result<Vec<TaskId>, ApiError> {
        let orchestrator = self.room.doors.orchestrator.clone();
        let Some(own_key) = own_key else {
            let tasks = self.planned(invocation, None).await?;
            let made = async move { self.made(tasks).await };
            return orchestrator.run_detached(made).await?;
        };
        let key = idempotency::named(&self.caller, KIND, &own_key);
        if let Some(kept) = orchestrator.recorded(&key).await? {
            return task_ids(kept);
        }
        let name =
            |index| idempotency::named(&self.caller, "http-target", &format!("{index}:{own_key}"));
        let keyed = |(index, task)| NewTask { key: Some(name(index)), ..task };
        // Cut off before what became of it was kept, it may have made the first of its tasks.
        let planned = self.planned(invocation, Some(&name(0))).await?;
        let tasks = planned.into_iter().enumerate().map(keyed).collect();
        let kept = async move { self.kept(key, &self.made(tasks).await?).await };
        orchestrator.run_detached(kept).await?
    }

    /// What each target becomes; nothing has happened yet, unless under the name `first`.
    async fn planned(
        &self,
        invocation: ValidInvocation,
        first: Option<&IdempotencyKey>,
    ) -> Result<Vec<NewTask>, ApiError> {
        let payer = self.caller.payer();
        self.room.doors.orchestrator.check_budget(payer.as_deref(), first).await?;
        let Invocation { targets, executor, tools, .. } = invocation.into_inner();
        let mut tasks = Vec::with_capacity(targets.len());
        for (index, target) in targets.into_iter().enumerate() {
            let terms = target::Terms { executor: &executor, tools: &tools };
            let task = target::task(&self.room, &self.caller, target, terms).await;
            let task = task.map_err(|error| error.about(&format!("targets[{index}]")))?;
            tasks.push(NewTask { payer: payer.clone(), ..task });
        }
        for (index, task) in tasks.iter().enumerate() {
            let checked = self.room.doors.orchestrator.check(task.clone()).await;
            checked.map_err(|error| ApiError::from(error).about(&format!("targets[{index}]")))?;
        }
        Ok(tasks)
    }

    /// Accepts the tasks. When one cannot be, those before it that nobody could find again are ended.
    async fn made(&self, tasks: Vec<NewTask>) -> Result<Vec<TaskId>, ApiError> {
        let orchestrator = &self.room.doors.orchestrator;
        let mut made = Vec::with_capacity(tasks.len());
        for task in tasks {
            let is_keyed = task.key.is_some();
            match orchestrator.invoke(task).await {
                Ok(task_id) => {
                    if !is_keyed {
                        self.room.trace(&self.headers, &task_id);
                    }
                    made.push(task_id);
                }
                Err(error) => {
                    for task_id in made.iter().filter(|_| !is_keyed) {
                        if let Err(error) = orchestrator.cancel(task_id).await {
                            tracing::warn!(task.id = %task_id, %error, "could not cancel");
                        }
                    }
                    return Err(error.into());
                }
            }
        }
        Ok(made)
    }

    /// Keeps which tasks they are. The first that were kept count.
    async fn kept(&self, key: IdempotencyKey, made: &[TaskId]) -> Result<Vec<TaskId>, ApiError> {
        let orchestrator = &self.room.doors.orchestrator;
        let title = format!("invocation of {} targets", made.len());
        let kept = orchestrator.record(&title, json!({ "task_ids": made }), key).await?;
        for task_id in made {
            self.room.trace(&self.headers, task_id);
        }
        task_ids(kept)
    }
}

fn task_ids(kept: Value) -> Result<Vec<TaskId>, ApiError> {
    let kept: Result<Kept, _> = serde_json::from_value(kept);
    let strange = |error| format!("what was kept of it cannot be read: {error}");
    let kept = kept.map_err(|error| ApiError::new(ErrorCode::InternalError, strange(error)))?;
    Ok(kept.task_ids)
}

/// What the tasks delivered, once all have ended; `None` when one is left that nobody works on.
async fn results(
    orchestrator: &Orchestrator,
    task_ids: &[TaskId],
) -> Result<Option<Vec<AgentResult>>, ApiError> {
    let mut results = Vec::with_capacity(task_ids.len());
    for task_id in task_ids {
        match ended(orchestrator, task_id).await {
            Ok(result) => results.push(result),
            Err(OrchestratorError::NotRunning { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Some(results))
}

/// Waits until a task has ended, whoever it waits for meanwhile.
async fn ended(
    orchestrator: &Orchestrator,
    task_id: &TaskId,
) -> Result<AgentResult, OrchestratorError> {
    loop {
        let state = orchestrator.wait(task_id).await?;
        if state.status.is_terminal() {
            let content = state.detail.unwrap_or_default();
            return Ok(AgentResult { content, task_id: task_id.clone(), status: state.status });
        }
        let mut events = orchestrator.follow(Some(task_id.clone()), state.position);
        events.next().await?;
    }
}
