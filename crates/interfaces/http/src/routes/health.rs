//! Health of the server. Needs no credentials.

use std::sync::Arc;

use antiphon_core::port::{Clock, SystemClock};
use antiphon_core::{HealthState, HealthStatus};
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
    answer(HealthState::Alive)
}

pub(crate) async fn ready(State(state): State<Arc<AppState>>) -> (StatusCode, Json<HealthStatus>) {
    answer(check(&state, HealthState::Ready).await)
}

pub(crate) async fn health(State(state): State<Arc<AppState>>) -> (StatusCode, Json<HealthStatus>) {
    answer(check(&state, HealthState::Healthy).await)
}

/// The server is unhealthy without its journal.
async fn check(state: &AppState, healthy: HealthState) -> HealthState {
    match state.deps.orchestrator.head().await {
        Ok(_) => healthy,
        Err(error) => {
            tracing::warn!(%error, "the journal does not answer");
            HealthState::Unhealthy
        }
    }
}

fn answer(state: HealthState) -> (StatusCode, Json<HealthStatus>) {
    let code = match state {
        HealthState::Healthy | HealthState::Ready | HealthState::Alive => StatusCode::OK,
        HealthState::Unhealthy => StatusCode::SERVICE_UNAVAILABLE,
    };
    (code, Json(HealthStatus { status: state, timestamp: SystemClock.now() }))
}
