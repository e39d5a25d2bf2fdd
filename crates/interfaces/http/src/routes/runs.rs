//! Tasks of other processes of the user, on the project's socket.

use std::sync::Arc;

use antiphon_api::{RunStarted, StartRun, VERSION};
use antiphon_core::ErrorCode;
use antiphon_interface_transport::openapi::{ApiRouter, DescribeRoute, Tag, post_with};
use antiphon_interface_transport::{ApiError, AppState, Caller, Json, OwnProcess, idempotency};
use axum::extract::State;
use axum::http::HeaderMap;

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let start = post_with(start, |route| {
        let summary = "Starts the task of another process of the user, with its folder, variables and \
                       permissions. Only on the project's socket.";
        let route = route.describe("start_run", Tag::Tasks, summary);
        route.with_idempotency_key().fails(&[403, 404, 409])
    });
    let hand_over = post_with(hand_over, |route| {
        let summary = "Asks the process that runs a task to give the journal to a server, when the calls that run are \
                       recorded. Only on the project's socket.";
        route.describe("request_hand_over", Tag::Server, summary).fails(&[403, 409])
    });
    let requests = post_with(watch_requests, |route| {
        let summary = "Asks the owner of the journal to carry out requests that are dropped as files. Only on the \
                       project's socket.";
        route.describe("watch_requests", Tag::Server, summary).fails(&[403])
    });
    ApiRouter::new()
        .api_route("/v1/owner/requests", requests)
        .api_route("/v1/runs", start)
        .api_route("/v1/owner/hand_over", hand_over)
}

/// Starts the task of another process of the user. The journal has it before the response.
async fn start(
    State(state): State<Arc<AppState>>,
    _: OwnProcess,
    headers: HeaderMap,
    Json(wire): Json<StartRun>,
) -> Result<axum::Json<RunStarted>, ApiError> {
    if wire.version != VERSION {
        let (theirs, pid) = (&wire.version, std::process::id());
        let message = format!(
            "process {pid} works on the tasks of this project with version {VERSION}, and this command has \
             version {theirs}: use the same version, or wait until that process has ended"
        );
        return Err(ApiError::new(ErrorCode::Conflict, message));
    }
    let key = idempotency::key(&Caller::Owner, "run", &headers)?;
    Ok(axum::Json(state.deps.task_factory.start_run(wire, key).await?))
}

/// Asks the owner for the journal. It gives it when the calls that run are recorded.
async fn hand_over(
    State(state): State<Arc<AppState>>,
    _: OwnProcess,
) -> Result<axum::Json<()>, ApiError> {
    state.deps.task_factory.hand_over()?;
    Ok(axum::Json(()))
}

/// From now on the owner carries out requests that are dropped as files.
async fn watch_requests(
    State(state): State<Arc<AppState>>,
    _: OwnProcess,
) -> Result<axum::Json<()>, ApiError> {
    state.deps.task_factory.watch_requests();
    Ok(axum::Json(()))
}
