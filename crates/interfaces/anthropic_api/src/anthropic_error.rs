//! Errors in Anthropic's shape.

use antiphon_core::ErrorResponse;
use antiphon_interface_transport::answer::AnswerError;
use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::message_request::NO_THREADS;

/// The body of an error.
pub(crate) fn body(error: &AnswerError) -> Value {
    let kind = if error.spent.is_some() { "billing_error" } else { kind(error.status) };
    let mut body = json!({ "type": "error", "error": { "type": kind, "message": error.message } });
    if error.code.as_deref() == Some(NO_THREADS) {
        body["error"]["details"] = json!({ "error_code": NO_THREADS, "unsupported": ["thread"] });
    }
    body
}

/// The body of an error of a request that reached no handler.
pub(crate) fn reshape(status: StatusCode, native: &ErrorResponse) -> Value {
    body(&AnswerError::new(status, native.message.clone()))
}

/// Anthropic's type of an error.
fn kind(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::NOT_FOUND => "not_found_error",
        StatusCode::CONFLICT => "conflict_error",
        StatusCode::PAYLOAD_TOO_LARGE => "request_too_large",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        StatusCode::SERVICE_UNAVAILABLE => "overloaded_error",
        StatusCode::GATEWAY_TIMEOUT | StatusCode::REQUEST_TIMEOUT => "timeout_error",
        status if status.is_server_error() => "api_error",
        _ => "invalid_request_error",
    }
}
