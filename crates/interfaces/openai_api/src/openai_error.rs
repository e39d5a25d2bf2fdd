//! Errors in OpenAI's shape, or in the native shape for canonical requests.

use antiphon_core::ErrorResponse;
use antiphon_interface_transport::answer::{AnswerError, QUOTA};
use axum::http::StatusCode;
use serde_json::{Value, json};

/// The shape of a chat request, of its response and of its errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    OpenAi,
    /// Canonical messages, which have `id` and `timestamp`.
    Canonical,
}

/// The body of an error.
pub(crate) fn body(error: &AnswerError, shape: Shape) -> Value {
    match shape {
        Shape::OpenAi => json!({ "error": {
            "message": error.message, "type": kind(error), "param": error.param, "code": error.code,
        }}),
        Shape::Canonical => error.native_body(),
    }
}

/// The body of an error of a request that reached no handler.
pub(crate) fn reshape(status: StatusCode, native: &ErrorResponse) -> Value {
    let error = AnswerError::new(status, native.message.clone());
    let param = native.details.as_ref().and_then(|details| details.get("field")).cloned();
    let code = match status {
        StatusCode::UNAUTHORIZED => Some("invalid_api_key".to_owned()),
        StatusCode::TOO_MANY_REQUESTS => Some("rate_limit_exceeded".to_owned()),
        _ => None,
    };
    body(&AnswerError { param, code, ..error }, Shape::OpenAi)
}

/// A field that cannot be honored: 400.
pub(crate) fn unsupported(name: &str) -> AnswerError {
    let message = match name {
        "functions" | "function_call" => {
            format!("`{name}` is not supported; use `tools` and `tool_choice`")
        }
        _ => format!("`{name}` is not supported; omit it"),
    };
    let error = AnswerError::new(StatusCode::BAD_REQUEST, message);
    let error = error.coded("unsupported_parameter").because("not supported");
    AnswerError { param: Some(name.to_owned()), ..error }
}

/// OpenAI's type of an error.
fn kind(error: &AnswerError) -> &'static str {
    match error.status {
        _ if error.spent.is_some() => QUOTA,
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        status if status.is_server_error() => "server_error",
        _ => "invalid_request_error",
    }
}
