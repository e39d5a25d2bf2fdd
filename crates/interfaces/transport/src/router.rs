//! The router of the server: the routes of all interfaces and of the `OpenAPI` document, behind the guard.

use std::sync::Arc;

use antiphon_core::ErrorCode;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::{Extension, Router, middleware};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::access::guard;
use crate::access::hosts::Hosts;
use crate::api_error::ApiError;
use crate::interface::RouteAccess;
use crate::openapi::{self, Document};
use crate::request_log;
use crate::server_config::ServerConfig;
use crate::state::AppState;

pub(crate) fn router(config: ServerConfig, hosts: Hosts, closing: CancellationToken) -> Router {
    let ServerConfig { deps, keys, telemetry, interface } = config;
    let (described, access) = RouteAccess::split(interface.merge(openapi::interface()));
    let (router, document) = Document::of(described, &access);
    let streams = Arc::new(Semaphore::new(deps.limits.streams_max));
    let body_bytes_max = deps.limits.body_bytes_max;
    let state = Arc::new(AppState { deps, telemetry, closing, keys, hosts, access, streams });
    router
        .fallback(no_route)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(Extension(Arc::new(document)))
        .layer(DefaultBodyLimit::max(body_bytes_max))
        .layer(middleware::from_fn_with_state(Arc::clone(&state), guard::guard))
        .layer(middleware::from_fn_with_state(Arc::clone(&state), request_log::log_request))
        .with_state(state)
}

async fn no_route() -> ApiError {
    ApiError::new(ErrorCode::NotFound, "no such route: see /docs")
}

async fn method_not_allowed() -> ApiError {
    ApiError::with_status(
        StatusCode::METHOD_NOT_ALLOWED,
        ErrorCode::InvalidRequest,
        "this route does not accept the method: see the header `allow`",
    )
}
