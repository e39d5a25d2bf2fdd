//! Health of the server. Needs no credentials.

use std::sync::Arc;

use antiphon_core::port::{AppendFault, Clock, SystemClock};
use antiphon_core::{HealthProblem, HealthState, HealthStatus};
use antiphon_interface_transport::AppState;
use antiphon_interface_transport::openapi::{
    ApiRouter, DescribeRoute, Tag, TransformOperation, get_with,
};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let health = get_with(health, |route| {
        unhealthy(route.describe("health", Tag::Server, "Whether the server works."))
    });
    let ready = get_with(ready, |route| {
        unhealthy(route.describe("health_ready", Tag::Server, "Whether the server accepts tasks."))
    });
    let live = get_with(live, |route| {
        let route = route.describe("health_live", Tag::Server, "Whether the process runs.");
        route.response::<200, Json<HealthStatus>>()
    });
    ApiRouter::new()
        .api_route("/health", health)
        .api_route("/health/live", live)
        .api_route("/health/ready", ready)
}

fn unhealthy(route: TransformOperation<'_>) -> TransformOperation<'_> {
    route.response::<200, Json<HealthStatus>>().response::<503, Json<HealthStatus>>()
}

pub(crate) async fn live() -> (StatusCode, Json<HealthStatus>) {
    answer(HealthState::Alive, Vec::new())
}

pub(crate) async fn ready(State(state): State<Arc<AppState>>) -> (StatusCode, Json<HealthStatus>) {
    check(&state, HealthState::Ready).await
}

pub(crate) async fn health(State(state): State<Arc<AppState>>) -> (StatusCode, Json<HealthStatus>) {
    check(&state, HealthState::Healthy).await
}

/// The server is unhealthy when its journal cannot be read or written, and when a task is stuck.
async fn check(state: &AppState, healthy: HealthState) -> (StatusCode, Json<HealthStatus>) {
    let orchestrator = &state.deps.orchestrator;
    let (read, storage) = (orchestrator.head().await, orchestrator.storage().await);
    let mut problems = Vec::new();
    match (&storage.fault, read) {
        (Some(AppendFault::Replaced { .. }), _) => problems.push(HealthProblem::JournalReplaced),
        (Some(AppendFault::Unavailable { .. }), _) => {
            problems.push(HealthProblem::JournalUnavailable);
        }
        (None, Err(error)) => {
            tracing::warn!(%error, "the journal does not answer");
            problems.push(HealthProblem::JournalUnavailable);
        }
        (None, Ok(_)) => {}
    }
    if storage.tasks_stuck > 0 {
        tracing::warn!(tasks = storage.tasks_stuck, "tasks are stuck");
        problems.push(HealthProblem::TaskStuck);
    }
    if orchestrator.is_draining() {
        problems.push(HealthProblem::Draining);
    }
    let found = if problems.is_empty() { healthy } else { HealthState::Unhealthy };
    answer(found, problems)
}

fn answer(state: HealthState, problems: Vec<HealthProblem>) -> (StatusCode, Json<HealthStatus>) {
    let code = match state {
        HealthState::Healthy | HealthState::Ready | HealthState::Alive => StatusCode::OK,
        HealthState::Unhealthy => StatusCode::SERVICE_UNAVAILABLE,
    };
    (code, Json(HealthStatus { status: state, timestamp: SystemClock.now(), problems }))
}
