//! Errors of A2A, in the shapes of its two bindings.
//!
//! | error                      | JSON-RPC        | HTTP |
//! |----------------------------|-----------------|------|
//! | of A2A itself              | −32001 to −32009 | 404 for a task, 500 for an invalid response, else 400 |
//! | invalid JSON, request, method, parameters | −32700, −32600, −32601, −32602 | 400 |
//! | no credentials, not allowed, too many requests | −32000 | 401, 403, 429; also in JSON-RPC, before a handler has the request |
//! | the server cannot do it now | −32603         | 503, 500 |

use a2a::error_code;
use antiphon_core::{ErrorCode, ErrorResponse};
use antiphon_interface_transport::ApiError;
use antiphon_project::RequestError;
use antiphon_runtime::{OrchestratorError, ReplayError};
use axum::http::StatusCode;
use serde_json::{Value, json};

/// JSON-RPC code of errors that neither JSON-RPC nor A2A names.
const SERVER_ERROR: i32 = -32000;

/// Domain of the reasons that A2A names, and of ours.
const A2A_DOMAIN: &str = "a2a-protocol.org";
const OWN_DOMAIN: &str = "antiphon";

/// A request that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct A2aError {
    pub(crate) code: i32,
    pub(crate) status: StatusCode,
    message: String,
    reason: &'static str,
    /// The field that is wrong.
    field: Option<String>,
}

impl A2aError {
    pub(crate) fn new(code: i32, message: impl Into<String>) -> Self {
        let status = match code {
            error_code::TASK_NOT_FOUND => StatusCode::NOT_FOUND,
            error_code::INVALID_AGENT_RESPONSE | error_code::INTERNAL_ERROR => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
            _ => StatusCode::BAD_REQUEST,
        };
        Self { code, status, message: message.into(), reason: reason(code), field: None }
    }

    /// A parameter is wrong.
    pub(crate) fn param(field: impl Into<String>, message: impl std::fmt::Display) -> Self {
        let field = field.into();
        let error = Self::new(error_code::INVALID_PARAMS, format!("`{field}`: {message}"));
        Self { field: Some(field), ..error }
    }

    pub(crate) fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(error_code::INVALID_REQUEST, message)
    }

    pub(crate) fn unsupported(message: impl Into<String>) -> Self {
        Self::new(error_code::UNSUPPORTED_OPERATION, message)
    }

    pub(crate) fn content_type(message: impl Into<String>) -> Self {
        Self::new(error_code::CONTENT_TYPE_NOT_SUPPORTED, message)
    }

    /// No task of this id that the caller may see.
    pub(crate) fn no_task() -> Self {
        Self::new(error_code::TASK_NOT_FOUND, "there is no such task")
    }

    /// No agent of this name that the caller may see.
    pub(crate) fn no_agent(message: impl Into<String>) -> Self {
        let error = Self::new(error_code::METHOD_NOT_FOUND, message);
        Self { status: StatusCode::NOT_FOUND, reason: "AGENT_NOT_FOUND", ..error }
    }

    /// There is no such path.
    pub(crate) fn no_route() -> Self {
        let error = Self::new(error_code::METHOD_NOT_FOUND, "there is no such operation");
        Self { status: StatusCode::NOT_FOUND, ..error }
    }

    /// The server cannot do it.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(error_code::INTERNAL_ERROR, message)
    }

    pub(crate) fn stopping() -> Self {
        let error = Self::new(error_code::INTERNAL_ERROR, "the server is shutting down: ask again");
        Self { status: StatusCode::SERVICE_UNAVAILABLE, reason: "UNAVAILABLE", ..error }
    }

    /// An error of the server that reached no handler.
    pub(crate) fn native(status: StatusCode, error: &ErrorResponse) -> Self {
        Self { status, ..Self::from(error.clone()) }
    }

    /// Details in the form of `ProtoJSON`'s `Any`.
    fn details(&self) -> Value {
        let domain = if is_a2a(self.code) { A2A_DOMAIN } else { OWN_DOMAIN };
        let info = json!({
            "@type": a2a::ERROR_INFO_TYPE, "reason": self.reason, "domain": domain,
        });
        let Some(field) = &self.field else { return json!([info]) };
        let violation = json!({ "field": field, "description": self.message });
        json!([info, { "@type": a2a::BAD_REQUEST_TYPE, "fieldViolations": [violation] }])
    }

    /// The `error` of a JSON-RPC response.
    pub(crate) fn json_rpc(&self) -> Value {
        json!({ "code": self.code, "message": self.message, "data": self.details() })
    }

    /// The body of an HTTP+JSON response: a `google.rpc.Status`.
    pub(crate) fn http(&self) -> Value {
        let status = match self.status {
            StatusCode::UNAUTHORIZED => "UNAUTHENTICATED",
            StatusCode::NOT_FOUND => "NOT_FOUND",
            StatusCode::FORBIDDEN => "PERMISSION_DENIED",
            StatusCode::TOO_MANY_REQUESTS => "RESOURCE_EXHAUSTED",
            StatusCode::SERVICE_UNAVAILABLE => "UNAVAILABLE",
            StatusCode::INTERNAL_SERVER_ERROR => "INTERNAL",
            _ if is_precondition(self.code) => "FAILED_PRECONDITION",
            _ => "INVALID_ARGUMENT",
        };
        json!({ "error": {
            "code": self.status.as_u16(), "status": status, "message": self.message,
            "details": self.details(),
        }})
    }
}

fn is_a2a(code: i32) -> bool {
    (error_code::VERSION_NOT_SUPPORTED..=error_code::TASK_NOT_FOUND).contains(&code)
}

fn is_precondition(code: i32) -> bool {
    is_a2a(code) && code != error_code::CONTENT_TYPE_NOT_SUPPORTED
}

/// The name of an error in upper case, as `ErrorInfo` has it.
fn reason(code: i32) -> &'static str {
    match code {
        error_code::TASK_NOT_FOUND => "TASK_NOT_FOUND",
        error_code::TASK_NOT_CANCELABLE => "TASK_NOT_CANCELABLE",
        error_code::PUSH_NOTIFICATION_NOT_SUPPORTED => "PUSH_NOTIFICATION_NOT_SUPPORTED",
        error_code::UNSUPPORTED_OPERATION => "UNSUPPORTED_OPERATION",
        error_code::CONTENT_TYPE_NOT_SUPPORTED => "CONTENT_TYPE_NOT_SUPPORTED",
        error_code::INVALID_AGENT_RESPONSE => "INVALID_AGENT_RESPONSE",
        error_code::EXTENDED_CARD_NOT_CONFIGURED => "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
        error_code::EXTENSION_SUPPORT_REQUIRED => "EXTENSION_SUPPORT_REQUIRED",
        error_code::VERSION_NOT_SUPPORTED => "VERSION_NOT_SUPPORTED",
        error_code::PARSE_ERROR => "PARSE_ERROR",
        error_code::INVALID_REQUEST => "INVALID_REQUEST",
        error_code::METHOD_NOT_FOUND => "METHOD_NOT_FOUND",
        error_code::INVALID_PARAMS => "INVALID_PARAMS",
        _ => "INTERNAL",
    }
}

impl From<ApiError> for A2aError {
    fn from(error: ApiError) -> Self {
        let ErrorResponse { code, message, details } = error.body();
        let field = details.as_ref().and_then(|details| details.get("field")).cloned();
        let (rpc, reason) = match code {
            ErrorCode::InvalidRequest | ErrorCode::InvalidMessage | ErrorCode::DomainViolation => {
                (error_code::INVALID_PARAMS, "INVALID_PARAMS")
            }
            ErrorCode::NotFound => (error_code::TASK_NOT_FOUND, "TASK_NOT_FOUND"),
            ErrorCode::Conflict | ErrorCode::InvalidStateTransition => {
                return Self::unsupported(message);
            }
            ErrorCode::Unauthorized => (SERVER_ERROR, "UNAUTHENTICATED"),
            ErrorCode::Forbidden => (SERVER_ERROR, "PERMISSION_DENIED"),
            ErrorCode::RateLimitExceeded => (SERVER_ERROR, "RESOURCE_EXHAUSTED"),
            ErrorCode::ServiceUnavailable => (error_code::INTERNAL_ERROR, "UNAVAILABLE"),
            ErrorCode::InternalError => (error_code::INTERNAL_ERROR, "INTERNAL"),
        };
        Self { code: rpc, status: error.status(), message: message.clone(), reason, field }
    }
}

impl From<OrchestratorError> for A2aError {
    fn from(error: OrchestratorError) -> Self {
        if let OrchestratorError::Replay(ReplayError::NoTask { .. }) = error {
            return Self::no_task();
        }
        ApiError::from(error).into()
    }
}

impl From<ErrorResponse> for A2aError {
    fn from(error: ErrorResponse) -> Self {
        ApiError::from(error).into()
    }
}

impl From<RequestError> for A2aError {
    fn from(error: RequestError) -> Self {
        ApiError::from(error).into()
    }
}
