//! Tasks: accepted, looked at.

use std::num::NonZeroUsize;
use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_core::{TaskId, TaskStatus, TaskSummary, WaitingFor};
use antiphon_runtime::{NewTask, Orchestrator, OrchestratorError};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::api_error::ApiError;
use crate::caller::Caller;
use crate::json::Json;
use crate::named::Named;
use crate::openapi::{Tag, Telling};
use crate::room::AppState;
use crate::task_request::{TaskRequest, TaskWire};
use crate::{idempotency, listing, on_behalf};

/// Tasks in one list, at most.
pub const LISTED_MAX: usize = 1000;

/// Tasks of one tree that are shown, at most. A larger tree is refused.
pub const TREE_TASKS_MAX: usize = 20_000;

/// Tasks in one list, unless somebody asks for more.
pub(crate) const LISTED: usize = 100;

const TREE_LIMIT: NonZeroUsize = NonZeroUsize::new(TREE_TASKS_MAX + 1).unwrap();

/// A task that was accepted.
#[derive(JsonSchema, Serialize)]
pub(crate) struct Accepted {
    task_id: TaskId,
}

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let list = get_with(listing::list, |route| {
        route.told("list_tasks", Tag::Tasks, "Tasks, page by page, the newest first.")
    });
    let list_and_accept = list.post_with(accept, |route| {
        let route = route.told("accept_task", Tag::Tasks, "Accepts a task: it is on disk then.");
        let route = route.keyed().traced().fails(&[404, 409, 422]);
        let route = route.response_with::<200, axum::Json<Accepted>, _>(|answer| {
            answer.description("The `Idempotency-Key` was used before: the task that it named.")
        });
        route.response::<201, axum::Json<Accepted>>()
    });
    let show = get_with(show, |route| {
        route.told("show_task", Tag::Tasks, "One task, with its result once it has ended.")
    });
    let tree = get_with(tree, |route| {
        let summary = "A task and everything below it, a parent before its children.";
        route.told("show_tree", Tag::Tasks, summary).fails(&[400])
    });
    ApiRouter::new()
        .api_route("/v1/tasks", list_and_accept)
        .api_route("/v1/tasks/{id}", show)
        .api_route("/v1/tasks/{id}/tree", tree)
}

/// Accepts a task. When this is answered, the journal has it.
pub(crate) async fn accept(
    State(room): State<Arc<AppState>>,
    caller: Caller,
    headers: HeaderMap,
    Json(wire): Json<TaskWire>,
) -> Result<(StatusCode, axum::Json<Accepted>), ApiError> {
    let key = idempotency::key(&caller, "http", &headers)?;
    let request = on_behalf::bounded(&room, &caller, TaskRequest::try_from(wire)?)?;
    let orchestrator = &room.doors.orchestrator;
    let payer = caller.payer();
    orchestrator.check_budget(payer.as_deref(), key.as_ref()).await?;
    let task = NewTask { payer, ..room.doors.desk.task(request).await? };
    on_behalf::may_start(&room, &caller, &task)?;
    let before = if key.is_some() { Some(orchestrator.head().await?) } else { None };
    let task_id = orchestrator.invoke(NewTask { key, ..task }).await?;
    let repeated = room.was_there(&task_id, before).await?;
    if !repeated {
        room.trace(&headers, &task_id);
    }
    let status = if repeated { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, axum::Json(Accepted { task_id })))
}

/// Tasks, at a glance.
#[derive(JsonSchema, Serialize)]
pub(crate) struct Tasks {
    tasks: Vec<TaskSummary>,
}

/// A task, and what came of it.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Task")]
pub(crate) struct Shown {
    #[serde(flatten)]
    summary: TaskSummary,
    /// What it delivered.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    /// Why it delivered nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Value>,
}

pub(crate) async fn show(
    State(room): State<Arc<AppState>>,
    Named(task_id): Named<TaskId>,
) -> Result<axum::Json<Shown>, ApiError> {
    let summary = room.summary(&task_id).await?;
    // Why it waits is told, too, where there is more to say than what for.
    if !summary.status.is_terminal() && summary.waiting_for != Some(WaitingFor::Budget) {
        return Ok(axum::Json(Shown { summary, result: None, reason: None }));
    }
    let detail = room.doors.orchestrator.task(&task_id).await?.detail;
    let (result, reason) = match summary.status {
        TaskStatus::Completed => (detail, None),
        TaskStatus::Pending
        | TaskStatus::Running
        | TaskStatus::InputRequired
        | TaskStatus::Failed
        | TaskStatus::Canceled => (None, detail),
    };
    Ok(axum::Json(Shown { summary, result, reason }))
}

/// A task and everything below it, the oldest first: a parent before its children.
pub(crate) async fn tree(
    State(room): State<Arc<AppState>>,
    Named(task_id): Named<TaskId>,
) -> Result<axum::Json<Tasks>, ApiError> {
    room.summary(&task_id).await?;
    match below(&room.doors.orchestrator, &task_id).await? {
        Some(tasks) => Ok(axum::Json(Tasks { tasks })),
        None => Err(too_many_tasks()),
    }
}

/// What is told of a tree that is too large.
pub(crate) fn too_many_tasks() -> ApiError {
    ApiError::invalid(format!("its tree has more than {TREE_TASKS_MAX} tasks"))
}

/// A task and everything below it, the oldest first; `None` when its tree is too large.
pub(crate) async fn below(
    orchestrator: &Orchestrator,
    task_id: &TaskId,
) -> Result<Option<Vec<TaskSummary>>, OrchestratorError> {
    let one = TaskQuery { which: TaskSelector::One(task_id.clone()), limit: NonZeroUsize::MIN };
    let Some(top) = orchestrator.tasks(one).await?.pop() else { return Ok(Some(Vec::new())) };
    let query = TaskQuery { which: TaskSelector::Tree(top.root), limit: TREE_LIMIT };
    let mut found = orchestrator.tasks(query).await?;
    if found.len() > TREE_TASKS_MAX {
        return Ok(None);
    }
    found.reverse();
    let mut below = std::collections::HashSet::from([task_id.clone()]);
    let tasks = found.into_iter().filter(|task| {
        let is_below = task.parent.as_ref().is_some_and(|parent| below.contains(parent));
        if is_below {
            below.insert(task.task_id.clone());
        }
        is_below || below.contains(&task.task_id)
    });
    Ok(Some(tasks.collect()))
}
