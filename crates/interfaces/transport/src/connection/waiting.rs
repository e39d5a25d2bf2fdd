//! A server that has its address and does not have the journal yet: another process works on the tasks of the project.
//! Every request is answered with 503 and when to ask again, `/health` says why, and nothing is read or changed.

use antiphon_core::port::{Clock, SystemClock};
use antiphon_core::{ErrorCode, HealthProblem, HealthState, HealthStatus};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};

use super::listeners::Listeners;
use super::serve::serve_router;
use crate::api_error::ApiError;
use crate::limits::ServerLimits;

/// Answers requests until `ready` is. The listeners stay open for the caller.
pub async fn serve_waiting<T>(
    listeners: &Listeners,
    limits: ServerLimits,
    ready: impl Future<Output = T>,
) -> T {
    let router = Router::new()
        .route("/health", get(waiting))
        .route("/health/ready", get(waiting))
        .route("/health/live", get(live))
        .fallback(refuse);
    serve_router(listeners, router, limits, ready).await
}

async fn waiting() -> (StatusCode, Json<HealthStatus>) {
    let problems = vec![HealthProblem::WaitingForJournal];
    let health =
        HealthStatus { status: HealthState::Unhealthy, timestamp: SystemClock.now(), problems };
    (StatusCode::SERVICE_UNAVAILABLE, Json(health))
}

async fn live() -> Json<HealthStatus> {
    let timestamp = SystemClock.now();
    Json(HealthStatus { status: HealthState::Alive, timestamp, problems: Vec::new() })
}

async fn refuse() -> ApiError {
    ApiError::new(
        ErrorCode::ServiceUnavailable,
        "another process works on the tasks of this project, and this server takes over when the calls that run there \
         are recorded: try again after `retry-after` seconds",
    )
}
