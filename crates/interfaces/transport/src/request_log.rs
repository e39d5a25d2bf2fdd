//! Counts and logs every request by its route.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;

use crate::request::request_id;
use crate::state::AppState;

/// The route of a request that matches none, in metrics.
const NO_ROUTE: &str = "nowhere";

/// Counts and logs a request with any response.
pub(crate) async fn log_request(
    State(state): State<Arc<AppState>>,
    request: Request,
    next: Next,
) -> Response {
    let started = Instant::now();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let response = next.run(request).await;
    let (route, status) = (route.as_ref().map_or(NO_ROUTE, MatchedPath::as_str), response.status());
    let took = started.elapsed();
    if let Some(telemetry) = &state.telemetry {
        telemetry.metrics.http(method.as_str(), route, status.as_u16(), took);
    }
    tracing::info!(
        http.method = %method,
        http.route = route,
        http.status = status.as_u16(),
        http.request_id = request_id::of(response.headers()),
        took_ms = took.as_millis(),
        "answered"
    );
    response
}
