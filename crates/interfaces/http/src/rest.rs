//! Whether a task rests: it has ended, or nothing of it goes on without somebody. Who asks may wait for
//! that, up to a limit, and asks again when it does not. Waiting ends with the server.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
pub use antiphon_api::REST_WAIT_S_MAX;
use antiphon_api::{TaskRest, TaskWaitQuery};
use antiphon_core::{ErrorCode, TaskId};
use axum::extract::State;

use crate::api_error::ApiError;
use crate::named::{Asked, Named};
use crate::openapi::{Tag, Telling};
use crate::room::AppState;

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let rest = get_with(rest, |route| {
        let summary = "Waits until a task has ended, or nothing of it goes on without somebody.";
        route.told("wait_for_task", Tag::Tasks, summary).fails(&[409])
    });
    ApiRouter::new().api_route("/v1/tasks/{id}/rest", rest)
}

pub(crate) async fn rest(
    State(room): State<Arc<AppState>>,
    Named(task_id): Named<TaskId>,
    Asked(query): Asked<TaskWaitQuery>,
) -> Result<axum::Json<TaskRest>, ApiError> {
    let wait_s = query.wait_s.map_or(REST_WAIT_S_MAX, NonZeroU32::get);
    if wait_s > REST_WAIT_S_MAX {
        return Err(ApiError::invalid(format!("`wait_s`: 1 to {REST_WAIT_S_MAX}")));
    }
    let patience = Duration::from_secs(wait_s.into());
    let resting = tokio::time::timeout(patience, room.doors.orchestrator.wait(&task_id));
    let rests = tokio::select! {
        () = room.closing.cancelled() => {
            let message = "the server ends: ask the next one";
            return Err(ApiError::new(ErrorCode::ServiceUnavailable, message));
        }
        resting = resting => resting.ok().transpose()?.is_some(),
    };
    Ok(axum::Json(TaskRest { rests, summary: room.summary(&task_id).await? }))
}
