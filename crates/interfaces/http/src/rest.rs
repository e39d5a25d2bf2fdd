//! Whether a task rests: it has ended, or nothing of it goes on without somebody. Who asks may wait for
//! that, up to a limit, and asks again when it does not. Waiting ends with the server.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use antiphon_core::{ErrorCode, TaskId, TaskSummary};
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api_error::ApiError;
use crate::named::{Asked, Named};
use crate::openapi::{Tag, Telling};
use crate::room::AppState;

/// How long anybody is kept waiting, in seconds: less than an answer may take.
pub const REST_WAIT_S_MAX: u32 = 30;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct WaitQuery {
    /// How long to wait, in seconds; 30 when absent.
    #[schemars(range(max = REST_WAIT_S_MAX))]
    wait_s: Option<NonZeroU32>,
}

/// A task, and whether it rests.
#[derive(JsonSchema, Serialize)]
pub(crate) struct Resting {
    /// It has ended, or nothing of it goes on without somebody.
    rests: bool,
    #[serde(flatten)]
    summary: TaskSummary,
}

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
    Asked(query): Asked<WaitQuery>,
) -> Result<axum::Json<Resting>, ApiError> {
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
    Ok(axum::Json(Resting { rests, summary: room.summary(&task_id).await? }))
}
