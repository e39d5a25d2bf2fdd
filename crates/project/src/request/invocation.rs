//! Top-level invocations: requests to dispatch 1..N targets, each of which becomes a task.
//!
//! Every target is checked before any task is created: either all can be accepted, or nothing has happened.
//! A top-level invocation has no parent task, so it can inherit no context and hand nothing over. A repeated
//! idempotency key returns the same tasks, also after a restart in the middle. Once the first task is
//! created, the others are too, even when the client disconnects.

use std::sync::Arc;

use antiphon_core::port::IdempotencyKey;
use antiphon_core::{
    AgentResult, ContextScope, ErrorCode, ErrorResponse, Invocation, InvocationResult, Join,
    TaskId, ValidInvocation,
};
use antiphon_runtime::{AcceptedTask, NewTask, Orchestrator, OrchestratorError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::request::invocation_target::{SharedTerms, target_task};
use crate::request::principal::Principal;
use crate::request::request_error::{RequestError, invalid_request, refused, refused_field};
use crate::request::task_factory::TaskFactory;

/// Targets of one invocation, at most.
pub const INVOCATION_TARGETS_MAX: usize = 256;

/// Kind of the idempotency keys of invocations.
const KIND: &str = "http-invocation";

/// Kind of the idempotency keys of their tasks.
const TARGET_KIND: &str = "http-target";

/// Refuses an invocation that cannot be dispatched at the top level.
pub fn check_invocation(invocation: Invocation) -> Result<ValidInvocation, ErrorResponse> {
    let refuse = |field: &str, message: String| {
        Err(refused_field(ErrorCode::DomainViolation, field, message))
    };
    let got = invocation.targets.len();
    if got > INVOCATION_TARGETS_MAX {
        let message = format!("`targets`: at most {INVOCATION_TARGETS_MAX}, got {got}");
        return Err(invalid_request(message));
    }
    let scope = match invocation.context {
        ContextScope::Independent => None,
        ContextScope::Inherited => Some("inherited"),
        ContextScope::Shared => Some("shared"),
    };
    if let Some(scope) = scope {
        return refuse(
            "context",
            format!(
                "context `{scope}`: this invocation has no parent task to take a context from: use \
             `independent`, or POST /v1/tasks with a `session_id`"
            ),
        );
    }
    match invocation.join {
        Join::Single | Join::All | Join::Detached => {}
        join @ (Join::Any | Join::Quorum { .. }) => {
            let join = join.as_str();
            return refuse(
                "join",
                format!("join `{join}` is only for agents: use `single`, `all` or `detached`"),
            );
        }
    }
    invocation.validate().or_else(|error| refuse(error.field(), error.to_string()))
}

/// Dispatches invocations of one principal.
pub struct Dispatch {
    /// Runs the tasks.
    pub orchestrator: Orchestrator,
    /// Builds the tasks.
    pub task_factory: Arc<dyn TaskFactory>,
    /// Who asks.
    pub principal: Principal,
    /// Called for each task that was created, once, after it is durable.
    pub on_created: Arc<dyn Fn(&TaskId) + Send + Sync>,
}

/// What is recorded of an invocation under its idempotency key.
#[derive(Serialize, Deserialize)]
struct Recorded {
    task_ids: Vec<TaskId>,
}

impl Dispatch {
    /// Creates the tasks of an invocation. Returns the tasks from before when `own_key` was used before.
    pub async fn dispatch(
        self,
        invocation: ValidInvocation,
        own_key: Option<String>,
    ) -> Result<Vec<TaskId>, RequestError> {
        let orchestrator = self.orchestrator.clone();
        let Some(own_key) = own_key else {
            let tasks = self.plan(invocation, None).await?;
            let created = Box::pin(async move { self.create(tasks).await });
            return Ok(orchestrator.run_detached(created).await??);
        };
        let key = self.principal.idempotency_key(KIND, &own_key);
        if let Some(recorded) = orchestrator.recorded(&key).await? {
            return Ok(task_ids(recorded)?);
        }
        let task_key =
            |index| self.principal.idempotency_key(TARGET_KIND, &format!("{index}:{own_key}"));
        let keyed = |(index, task)| NewTask { key: Some(task_key(index)), ..task };
        // Interrupted before the record was written, an earlier request may have created the first task.
        let planned = self.plan(invocation, Some(&task_key(0))).await?;
        let tasks = planned.into_iter().enumerate().map(keyed).collect();
        let recorded = Box::pin(async move { self.record(key, &self.create(tasks).await?).await });
        orchestrator.run_detached(recorded).await?
    }

    /// The tasks of all targets, checked. Creates none. `first` is the key of the first task.
    async fn plan(
        &self,
        invocation: ValidInvocation,
        first: Option<&IdempotencyKey>,
    ) -> Result<Vec<NewTask>, RequestError> {
        let payer = self.principal.key_id.clone();
        self.orchestrator.check_budget(payer.as_deref(), first).await?;
        let Invocation { targets, executor, tools, .. } = invocation.into_inner();
        let mut tasks = Vec::with_capacity(targets.len());
        for (index, target) in targets.into_iter().enumerate() {
            let terms = SharedTerms { executor: &executor, tools: &tools };
            let (orchestrator, factory) = (&self.orchestrator, &*self.task_factory);
            let task = target_task(orchestrator, factory, &self.principal, target, terms).await;
            let task = task.map_err(|error| about_target(index, error.into()))?;
            let provenance = self.principal.provenance();
            tasks.push(NewTask { payer: payer.clone(), provenance, ..task });
        }
        for (index, task) in tasks.iter().enumerate() {
            let checked = self.orchestrator.check(task.clone()).await;
            checked.map_err(|error| about_target(index, error.into()))?;
        }
        Ok(tasks)
    }

    /// Creates the tasks. When one fails, cancels those before it that have no idempotency key.
    async fn create(&self, tasks: Vec<NewTask>) -> Result<Vec<TaskId>, OrchestratorError> {
        let mut created = Vec::with_capacity(tasks.len());
        for task in tasks {
            let is_keyed = task.key.is_some();
            match self.orchestrator.invoke(task).await {
                Ok(AcceptedTask { task_id, deduplicated }) => {
                    if !deduplicated {
                        (self.on_created)(&task_id);
                    }
                    created.push(task_id);
                }
                Err(error) => {
                    for task_id in created.iter().filter(|_| !is_keyed) {
                        if let Err(error) = self.orchestrator.cancel(task_id).await {
                            tracing::warn!(task.id = %task_id, %error, "could not cancel");
                        }
                    }
                    return Err(error);
                }
            }
        }
        Ok(created)
    }

    /// Records the tasks under the key of the invocation. Returns the tasks that were recorded first.
    async fn record(
        &self,
        key: IdempotencyKey,
        created: &[TaskId],
    ) -> Result<Vec<TaskId>, RequestError> {
        let title = format!("invocation of {} targets", created.len());
        let record = json!({ "task_ids": created });
        let recorded = self.orchestrator.record(&title, record, key).await?;
        Ok(task_ids(recorded)?)
    }
}

/// The error, with the target that it is about.
fn about_target(index: usize, error: RequestError) -> RequestError {
    RequestError::About { part: format!("targets[{index}]"), error: Box::new(error) }
}

fn task_ids(recorded: Value) -> Result<Vec<TaskId>, ErrorResponse> {
    let recorded: Result<Recorded, _> = serde_json::from_value(recorded);
    let unreadable = |error| format!("the record of the invocation cannot be read: {error}");
    let recorded =
        recorded.map_err(|error| refused(ErrorCode::InternalError, unreadable(error)))?;
    Ok(recorded.task_ids)
}

/// Waits until all tasks have ended, and returns their results in order. `None` when a task is suspended and
/// no process works on it.
pub async fn invocation_results(
    orchestrator: &Orchestrator,
    task_ids: &[TaskId],
) -> Result<Option<Vec<AgentResult>>, OrchestratorError> {
    let mut results = Vec::with_capacity(task_ids.len());
    for task_id in task_ids {
        match task_result(orchestrator, task_id).await {
            Ok(result) => results.push(result),
            Err(OrchestratorError::NotRunning { .. }) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(Some(results))
}

/// The results in the form that `join` asks for.
pub fn joined_result(join: Join, mut results: Vec<AgentResult>) -> InvocationResult {
    match results.pop() {
        Some(result) if join == Join::Single => InvocationResult::Scalar { result },
        last => InvocationResult::Vector { results: results.into_iter().chain(last).collect() },
    }
}

/// Waits until a task has ended, also while it is suspended.
async fn task_result(
    orchestrator: &Orchestrator,
    task_id: &TaskId,
) -> Result<AgentResult, OrchestratorError> {
    loop {
        orchestrator.rest(task_id).await?;
        let state = orchestrator.task_alone(task_id).await?;
        if state.status.is_terminal() {
            let content = state.detail.unwrap_or_default();
            return Ok(AgentResult { content, task_id: task_id.clone(), status: state.status });
        }
        let mut events = orchestrator.follow(Some(task_id.clone()), state.position);
        events.next().await?;
    }
}
