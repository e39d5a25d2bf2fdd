//! The router of the server: the routes of all interfaces and of the `OpenAPI` document, behind the guard.

use std::sync::Arc;

use antiphon_core::ErrorCode;
use antiphon_keys::{RateLimit, RateLimitError, WrongKeys};
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::{Extension, Router, middleware};
use tokio_util::sync::CancellationToken;

use crate::access::hosts::Hosts;
use crate::access::open_requests::OpenRequests;
use crate::access::request_guard;
use crate::access::route_access::RouteAccess;
use crate::access::shared_limit::SharedLimit;
use crate::api_error::ApiError;
use crate::openapi::{self, Document};
use crate::request_log;
use crate::server_config::ServerConfig;
use crate::state::AppState;

/// Fails on a rate limit that is out of range.
pub(crate) fn router(
    config: ServerConfig,
    hosts: Hosts,
    closing: CancellationToken,
) -> Result<Router, RateLimitError> {
    let ServerConfig { deps, keys, telemetry, chat_agents, interface } = config;
    let (described, access) = RouteAccess::split(interface.merge(openapi::interface()));
    let (router, document) = Document::of(described, &access);
    let limits = deps.limits;
    let wrong_keys = WrongKeys::new(
        RateLimit::per_minute(limits.wrong_keys_per_minute)?,
        RateLimit::per_minute(limits.wrong_keys_per_minute_total)?,
    );
    let state = Arc::new(AppState {
        deps,
        telemetry,
        closing,
        keys,
        hosts,
        access,
        chat_agents,
        streams: SharedLimit::new(limits.streams_max),
        body_bytes: SharedLimit::new(limits.body_bytes_total_max),
        open_requests: OpenRequests::new(limits.requests_per_key_max),
        wrong_keys,
    });
    let router = router
        .fallback(no_route)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(Extension(Arc::new(document)))
        .layer(DefaultBodyLimit::max(limits.body_bytes_max))
        .layer(middleware::from_fn_with_state(Arc::clone(&state), request_guard::guard))
        .layer(middleware::from_fn_with_state(Arc::clone(&state), request_log::log_request))
        .with_state(state);
    Ok(router)
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
