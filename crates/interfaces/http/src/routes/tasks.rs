//! Tasks: created and shown.

mod control;
mod diff;
mod events;
pub(crate) mod list;
mod new_task;
pub(crate) mod wait;

use std::sync::Arc;

use antiphon_api::{CreateTask, TaskAccepted, TaskDetail, TaskTree};
use antiphon_core::{TaskAccess, TaskId, TaskStatus, WaitingFor};
use antiphon_interface_transport::openapi::{ApiRouter, DescribeRoute, Tag, get_with};
use antiphon_interface_transport::{ApiError, AppState, Caller, Json, PathId, idempotency};
use antiphon_project::project_task_factory::no_session;
use antiphon_project::{
    TREE_TASKS_MAX, TreeScope, check_start_allowed, restrict_to_agent, task_and_descendants,
};
use antiphon_runtime::{AcceptedTask, NewTask, TaskState};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};

/// Kind of the keys under which tasks are created.
pub(crate) const CREATED: &str = "http";

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let tasks = get_with(list::list, |route| {
        route.describe("list_tasks", Tag::Tasks, "Lists tasks by page, the newest first.")
    });
    let tasks = tasks.post_with(create, |route| {
        let route = route.describe(
            "accept_task",
            Tag::Tasks,
            "Creates a task. It is durable before the response.",
        );
        let route = route.with_idempotency_key().with_traceparent().fails(&[404, 409, 422]);
        let route = route.response_with::<200, axum::Json<TaskAccepted>, _>(|response| {
            response.description("The `Idempotency-Key` was used before: the task from then.")
        });
        route.response::<201, axum::Json<TaskAccepted>>()
    });
    let show = get_with(show, |route| {
        route.describe("show_task", Tag::Tasks, "A task, with its result once it has ended.")
    });
    let tree = get_with(tree, |route| {
        let summary = "A task and its descendants, a parent before its children.";
        route.describe("show_tree", Tag::Tasks, summary).fails(&[400])
    });
    ApiRouter::new()
        .api_route("/v1/tasks", tasks)
        .api_route("/v1/tasks/{id}", show)
        .api_route("/v1/tasks/{id}/tree", tree)
        .merge(wait::routes())
        .merge(events::routes())
        .merge(control::routes())
        .merge(diff::routes())
}

/// Creates a task. It is durable before the response.
pub(crate) async fn create(
    State(state): State<Arc<AppState>>,
    caller: Caller,
    headers: HeaderMap,
    Json(wire): Json<CreateTask>,
) -> Result<(StatusCode, axum::Json<TaskAccepted>), ApiError> {
    let key = idempotency::key(&caller, CREATED, &headers)?;
    if let Some(session_id) = &wire.session_id {
        state.check_session(&caller, session_id, |id| no_session(id).into()).await?;
    }
    let followed = wire.followed;
    let access = if wire.plan { TaskAccess::PlanFirst } else { TaskAccess::Permitted };
    let (factory, principal) = (&*state.deps.task_factory, caller.principal());
    let request = restrict_to_agent(factory, &principal, new_task::task_request(wire)?)?;
    let orchestrator = &state.deps.orchestrator;
    let payer = caller.payer();
    orchestrator.check_budget(payer.as_deref(), key.as_ref()).await?;
    let provenance = principal.provenance();
    let task = NewTask { payer, provenance, followed, access, ..factory.task(request).await? };
    check_start_allowed(orchestrator, &principal, &task)?;
    let accepted = orchestrator.invoke(NewTask { key, ..task }).await?;
    let AcceptedTask { task_id, deduplicated } = accepted;
    if !deduplicated {
        state.trace(&headers, &task_id);
    }
    let status = if deduplicated { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, axum::Json(TaskAccepted { task_id })))
}

pub(crate) async fn show(
    State(state): State<Arc<AppState>>,
    PathId(task_id): PathId<TaskId>,
) -> Result<axum::Json<TaskDetail>, ApiError> {
    let summary = state.summary(&task_id).await?;
    // A task that waits for budget, its model or its peer, or on a peer, has details beside `waiting_for`.
    let held_there = summary.runs_on.peer.is_some() && summary.status == TaskStatus::InputRequired;
    let waits = held_there || summary.waiting_for.is_some_and(WaitingFor::continues_by_itself);
    let TaskState { created, detail, access, plan, todo, .. } =
        state.deps.orchestrator.task_alone(&task_id).await?;
    let canonical = created.canonical;
    let (result, reason) = match summary.status {
        TaskStatus::Completed => (detail, None),
        TaskStatus::Pending | TaskStatus::Running | TaskStatus::InputRequired if !waits => {
            (None, None)
        }
        TaskStatus::Pending
        | TaskStatus::Running
        | TaskStatus::InputRequired
        | TaskStatus::Failed
        | TaskStatus::Canceled => (None, detail),
    };
    Ok(axum::Json(TaskDetail { summary, result, reason, canonical, access, plan, todo }))
}

pub(crate) async fn tree(
    State(state): State<Arc<AppState>>,
    PathId(task_id): PathId<TaskId>,
) -> Result<axum::Json<TaskTree>, ApiError> {
    state.summary(&task_id).await?;
    match task_and_descendants(&state.deps.orchestrator, &task_id, TreeScope::WithPeers).await? {
        Some(tasks) => Ok(axum::Json(TaskTree { tasks })),
        None => Err(tree_too_large()),
    }
}

/// The error for a tree that is too large.
fn tree_too_large() -> ApiError {
    ApiError::invalid(format!("the tree of the task has more than {TREE_TASKS_MAX} tasks"))
}
