//! Which request goes where.

use std::sync::Arc;

use antiphon_core::ErrorCode;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::middleware;
use axum::routing::{get, post};

use crate::api_error::ApiError;
use crate::room::Room;
use crate::{
    approvals, events, guard, health, inbox, live, metrics, orders, requests, rest, tasks,
};

pub(crate) fn router(room: Arc<Room>) -> Router {
    Router::new()
        .route("/health", get(health::health))
        .route("/health/live", get(health::live))
        .route("/health/ready", get(health::ready))
        .route("/metrics", get(metrics::scrape))
        .route("/v1/tasks", get(tasks::list).post(tasks::accept))
        .route("/v1/tasks/{id}", get(tasks::show))
        .route("/v1/tasks/{id}/tree", get(tasks::tree))
        .route("/v1/tasks/{id}/rest", get(rest::rest))
        .route("/v1/tasks/{id}/events", get(events::events))
        .route("/v1/tasks/{id}/cancel", post(orders::cancel))
        .route("/v1/tasks/{id}/pause", post(orders::pause))
        .route("/v1/tasks/{id}/resume", post(orders::resume))
        .route("/v1/tasks/{id}/messages", post(orders::say))
        .route("/v1/tasks/{id}/tool_results", post(orders::tool_result))
        .route("/v1/agents/status", get(live::status))
        .route("/v1/agents/{name}/start", post(live::start))
        .route("/v1/agents/{name}/stop", post(live::stop))
        .route("/v1/agents/{name}/inbox", post(inbox::admit))
        .route("/v1/inbox", get(inbox::list))
        .route("/v1/requests/{id}", get(requests::show))
        .route("/v1/approvals", get(approvals::list))
        .route("/v1/approvals/{id}", post(approvals::decide))
        .merge(crate::chat::routes())
        .fallback(nowhere)
        .method_not_allowed_fallback(not_so)
        .layer(DefaultBodyLimit::max(room.doors.limits.body_bytes_max))
        .layer(middleware::from_fn_with_state(Arc::clone(&room), guard::guard))
        .layer(middleware::from_fn_with_state(Arc::clone(&room), metrics::count))
        .with_state(room)
}

async fn nowhere() -> ApiError {
    ApiError::new(ErrorCode::NotFound, "there is nothing here: see docs/server.md")
}

async fn not_so() -> ApiError {
    ApiError::with_status(
        StatusCode::METHOD_NOT_ALLOWED,
        ErrorCode::InvalidRequest,
        "this place does not take this method: see the header `allow`",
    )
}
