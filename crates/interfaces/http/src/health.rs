//! Whether the server works. Anybody may ask.

use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use aide::transform::TransformOperation;
use antiphon_core::port::{Clock, SystemClock};
use antiphon_core::{HealthState, HealthStatus};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;

use crate::openapi::{Tag, Telling};
use crate::room::AppState;

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let health =
        get_with(health, |route| unhealthy(route.told("health", Tag::Server, "Whether it works.")));
    let ready = get_with(ready, |route| {
        unhealthy(route.told("health_ready", Tag::Server, "Whether it takes work."))
    });
    let live = get_with(live, |route| {
        let route = route.told("health_live", Tag::Server, "Whether it runs.");
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

pub(crate) async fn ready(State(room): State<Arc<AppState>>) -> (StatusCode, Json<HealthStatus>) {
    answer(check(&room, HealthState::Ready).await)
}

pub(crate) async fn health(State(room): State<Arc<AppState>>) -> (StatusCode, Json<HealthStatus>) {
    answer(check(&room, HealthState::Healthy).await)
}

/// Nothing works without the journal.
async fn check(room: &AppState, good: HealthState) -> HealthState {
    match room.doors.orchestrator.head().await {
        Ok(_) => good,
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
