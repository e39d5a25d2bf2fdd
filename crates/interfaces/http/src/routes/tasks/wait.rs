//! `GET /v1/tasks/{id}/rest`: waits until a task has ended or is suspended, up to a limit. Waiting ends when
//! the server shuts down.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use antiphon_api::{TaskRest, TaskWaitQuery};
use antiphon_core::{ErrorCode, TaskId};
use antiphon_interface_transport::openapi::{ApiRouter, DescribeRoute, Tag, get_with};
use antiphon_interface_transport::{ApiError, AppState, PathId, QueryParams};
use axum::extract::State;

/// Longest wait of one request, in seconds: less than a response may take.
pub const WAIT_S_MAX: u32 = 30;

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let wait = get_with(wait, |route| {
        let summary = "Waits until a task has ended or is suspended.";
        route.describe("wait_for_task", Tag::Tasks, summary).fails(&[409])
    });
    ApiRouter::new().api_route("/v1/tasks/{id}/rest", wait)
}

pub(crate) async fn wait(
    State(state): State<Arc<AppState>>,
    PathId(task_id): PathId<TaskId>,
    QueryParams(query): QueryParams<TaskWaitQuery>,
) -> Result<axum::Json<TaskRest>, ApiError> {
    let timeout = wait_time(query.wait_s)?;
    let waiting = tokio::time::timeout(timeout, state.deps.orchestrator.rest(&task_id));
    let rests = tokio::select! {
        () = state.closing.cancelled() => return Err(shutting_down()),
        waited = waiting => waited.ok().transpose()?.is_some(),
    };
    Ok(axum::Json(TaskRest { rests, summary: state.summary(&task_id).await? }))
}

/// The time that a request waits: [`WAIT_S_MAX`] when absent. Refuses a longer one.
pub(crate) fn wait_time(wait_s: Option<NonZeroU32>) -> Result<Duration, ApiError> {
    let wait_s = wait_s.map_or(WAIT_S_MAX, NonZeroU32::get);
    if wait_s > WAIT_S_MAX {
        return Err(ApiError::invalid(format!("`wait_s`: 1 to {WAIT_S_MAX}")));
    }
    Ok(Duration::from_secs(wait_s.into()))
}

/// The error of a wait that the shutdown of the server ends.
pub(crate) fn shutting_down() -> ApiError {
    ApiError::new(ErrorCode::ServiceUnavailable, "the server is shutting down: ask again later")
}
