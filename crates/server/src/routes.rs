//! Which request goes where. Each module brings its routes, described: one that is not in the OpenAPI
//! document fails a test.

use std::sync::Arc;

use aide::axum::ApiRouter;
use antiphon_core::ErrorCode;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::{Extension, Router, middleware};

use crate::api_error::ApiError;
use crate::openapi::Document;
use crate::room::Room;
use crate::{
    approvals, chat, events, guard, health, inbox, live, metrics, openapi, orders, requests, rest,
    tasks,
};

/// Every route.
pub(crate) fn routes() -> ApiRouter<Arc<Room>> {
    ApiRouter::new()
        .merge(tasks::routes())
        .merge(rest::routes())
        .merge(events::routes())
        .merge(orders::routes())
        .merge(live::routes())
        .merge(inbox::routes())
        .merge(requests::routes())
        .merge(approvals::routes())
        .merge(chat::routes())
        .merge(health::routes())
        .merge(metrics::routes())
        .merge(openapi::routes())
}

pub(crate) fn router(room: Arc<Room>) -> Router {
    let (router, document) = Document::of(routes());
    router
        .fallback(nowhere)
        .method_not_allowed_fallback(not_so)
        .layer(Extension(Arc::new(document)))
        .layer(DefaultBodyLimit::max(room.doors.limits.body_bytes_max))
        .layer(middleware::from_fn_with_state(Arc::clone(&room), guard::guard))
        .layer(middleware::from_fn_with_state(Arc::clone(&room), metrics::count))
        .with_state(room)
}

async fn nowhere() -> ApiError {
    ApiError::new(ErrorCode::NotFound, "there is nothing here: see /docs")
}

async fn not_so() -> ApiError {
    ApiError::with_status(
        StatusCode::METHOD_NOT_ALLOWED,
        ErrorCode::InvalidRequest,
        "this place does not take this method: see the header `allow`",
    )
}
