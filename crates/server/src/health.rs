//! Whether the server works. Anybody may ask.

use std::sync::Arc;

use antiphon_core::port::{Clock, SystemClock};
use antiphon_core::{HealthState, HealthStatus};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;

use crate::room::Room;

/// Paths that need no token.
const OPEN: [&str; 3] = ["/health", "/health/live", "/health/ready"];

/// Whether this path needs no token.
pub(crate) fn is_open(path: &str) -> bool {
    OPEN.contains(&path)
}

pub(crate) async fn live() -> (StatusCode, Json<HealthStatus>) {
    answer(HealthState::Alive)
}

pub(crate) async fn ready(State(room): State<Arc<Room>>) -> (StatusCode, Json<HealthStatus>) {
    answer(check(&room, HealthState::Ready).await)
}

pub(crate) async fn health(State(room): State<Arc<Room>>) -> (StatusCode, Json<HealthStatus>) {
    answer(check(&room, HealthState::Healthy).await)
}

/// Nothing works without the journal.
async fn check(room: &Room, good: HealthState) -> HealthState {
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
