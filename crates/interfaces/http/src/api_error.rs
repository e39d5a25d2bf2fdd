//! How a request fails: the one error shape, with its HTTP status.

use std::collections::BTreeMap;

use aide::OperationOutput;
use aide::generate::GenContext;
use aide::openapi::{self, Operation};
use antiphon_core::port::{Clock, JournalError, SystemClock};
use antiphon_core::{ErrorCode, ErrorResponse};
use antiphon_keys::Verdict;
use antiphon_runtime::{BudgetSpent, OrchestratorError, Rejection, ReplayError};
use axum::Json;
use axum::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use crate::budget;
use crate::openapi::fails;

/// When to ask again, unless somebody knows better.
pub(crate) const RETRY_AFTER_S: u64 = 1;

/// A request that was not done.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    body: ErrorResponse,
    /// When to ask again, where asking again may help.
    retry_after_s: u64,
}

impl ApiError {
    /// An error whose status follows from its code.
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::with_status(status(code), code, message)
    }

    /// An error of HTTP itself, for which there is no word of its own.
    pub(crate) fn with_status(
        status: StatusCode,
        code: ErrorCode,
        message: impl Into<String>,
    ) -> Self {
        let body = ErrorResponse { code, message: message.into(), details: None };
        Self { status, body, retry_after_s: RETRY_AFTER_S }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidRequest, message)
    }

    /// The same, of a part of the request.
    pub(crate) fn about(mut self, part: &str) -> Self {
        self.body.message = format!("{part}: {}", self.body.message);
        self
    }

    /// A key or a source that comes too often, with how often it may.
    pub(crate) fn too_often(verdict: &Verdict) -> Self {
        let message = "this comes too often: come back after `retry-after` seconds";
        let mut refused = Self::new(ErrorCode::RateLimitExceeded, message);
        refused.body.details = details(verdict.details());
        refused
    }

    /// Nothing more may be spent for now.
    fn spent(spent: &BudgetSpent) -> Self {
        let mut refused = Self::new(ErrorCode::ServiceUnavailable, spent.to_string());
        refused.body.details = Some(budget::details(spent));
        refused.retry_after_s = budget::retry_after_s(spent, SystemClock.now());
        refused
    }
}

/// The fields of an object, as text.
fn details(value: Value) -> Option<BTreeMap<String, String>> {
    let text = |value: Value| match value {
        Value::String(text) => text,
        Value::Array(names) => {
            let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
            names.join(", ")
        }
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) => {
            other.to_string()
        }
    };
    match value {
        Value::Object(fields) => {
            Some(fields.into_iter().map(|(name, value)| (name, text(value))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            None
        }
    }
}

/// The status that every error of this code has.
fn status(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::InvalidRequest => StatusCode::BAD_REQUEST,
        ErrorCode::Unauthorized => StatusCode::UNAUTHORIZED,
        ErrorCode::Forbidden => StatusCode::FORBIDDEN,
        ErrorCode::NotFound => StatusCode::NOT_FOUND,
        ErrorCode::Conflict | ErrorCode::InvalidStateTransition => StatusCode::CONFLICT,
        ErrorCode::RateLimitExceeded => StatusCode::TOO_MANY_REQUESTS,
        ErrorCode::InternalError => StatusCode::INTERNAL_SERVER_ERROR,
        ErrorCode::ServiceUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorCode::InvalidMessage | ErrorCode::DomainViolation => StatusCode::UNPROCESSABLE_ENTITY,
    }
}

fn journal_code(error: &JournalError) -> ErrorCode {
    match error {
        JournalError::Stale { .. } | JournalError::Ended { .. } => ErrorCode::Conflict,
        JournalError::Invalid { .. } => ErrorCode::InvalidRequest,
        JournalError::Unavailable { .. } => ErrorCode::ServiceUnavailable,
        JournalError::Corrupt { .. } => ErrorCode::InternalError,
    }
}

fn code(error: &OrchestratorError) -> ErrorCode {
    match error {
        OrchestratorError::Journal(error) => journal_code(error),
        OrchestratorError::Replay(ReplayError::NoTask { .. })
        | OrchestratorError::NoApproval { .. }
        | OrchestratorError::NoSuchCall { .. } => ErrorCode::NotFound,
        OrchestratorError::Replay(ReplayError::OutOfOrder { .. } | ReplayError::TooDeep { .. })
        | OrchestratorError::Panicked { .. } => ErrorCode::InternalError,
        OrchestratorError::InboxFull { .. } => ErrorCode::RateLimitExceeded,
        OrchestratorError::Limit(_)
        | OrchestratorError::BadSchema { .. }
        | OrchestratorError::BadTool { .. }
        | OrchestratorError::AllowanceRefused { .. }
        | OrchestratorError::ResultTooLong { .. } => ErrorCode::InvalidRequest,
        OrchestratorError::NotRunning { .. }
        | OrchestratorError::CannotStart { .. }
        | OrchestratorError::Ended { .. }
        | OrchestratorError::SessionExists { .. }
        | OrchestratorError::AlreadyDecided { .. } => ErrorCode::Conflict,
        OrchestratorError::Budget(_)
        | OrchestratorError::NoModel { .. }
        | OrchestratorError::RuleNotSaved { .. }
        | OrchestratorError::Unresponsive { .. } => ErrorCode::ServiceUnavailable,
    }
}

/// What is to be mended, where the code alone does not tell.
fn cause(error: &OrchestratorError) -> Option<&'static str> {
    match error {
        OrchestratorError::Limit(_) => Some("limit"),
        OrchestratorError::NoModel { .. } => Some("model"),
        OrchestratorError::RuleNotSaved { .. } => Some("rule"),
        OrchestratorError::NotRunning { .. } => Some("at_rest"),
        OrchestratorError::Budget(_) => Some("budget"),
        OrchestratorError::Journal(_)
        | OrchestratorError::Replay(_)
        | OrchestratorError::InboxFull { .. }
        | OrchestratorError::BadSchema { .. }
        | OrchestratorError::BadTool { .. }
        | OrchestratorError::AllowanceRefused { .. }
        | OrchestratorError::NoSuchCall { .. }
        | OrchestratorError::ResultTooLong { .. }
        | OrchestratorError::NoApproval { .. }
        | OrchestratorError::AlreadyDecided { .. }
        | OrchestratorError::CannotStart { .. }
        | OrchestratorError::Ended { .. }
        | OrchestratorError::SessionExists { .. }
        | OrchestratorError::Panicked { .. }
        | OrchestratorError::Unresponsive { .. } => None,
    }
}

impl From<OrchestratorError> for ApiError {
    fn from(error: OrchestratorError) -> Self {
        if let OrchestratorError::Budget(spent) = &error {
            return Self::spent(spent);
        }
        let details = cause(&error).map(|cause| ("cause".to_owned(), cause.to_owned()));
        let mut refused = Self::new(code(&error), error.to_string());
        refused.body.details = details.map(|detail| BTreeMap::from([detail]));
        refused
    }
}

/// What was not accepted, with the reason in a word and whatever belongs to it.
impl From<Rejection> for ApiError {
    fn from(rejection: Rejection) -> Self {
        let code = match &rejection {
            Rejection::UnknownAgent { .. } => ErrorCode::NotFound,
            Rejection::NotStarted { .. }
            | Rejection::Stopped { .. }
            | Rejection::CannotStart { .. } => ErrorCode::Conflict,
            Rejection::Full { .. } | Rejection::SenderFull { .. } => ErrorCode::RateLimitExceeded,
            Rejection::TooLong { .. } => ErrorCode::InvalidRequest,
            Rejection::Invalid { .. } => ErrorCode::InvalidMessage,
        };
        let mut refused = Self::new(code, rejection.to_string());
        if matches!(rejection, Rejection::TooLong { .. }) {
            refused.status = StatusCode::PAYLOAD_TOO_LARGE;
        }
        refused.body.details = serde_json::to_value(&rejection).ok().and_then(details);
        refused
    }
}

impl From<ErrorResponse> for ApiError {
    fn from(body: ErrorResponse) -> Self {
        Self { status: status(body.code), body, retry_after_s: RETRY_AFTER_S }
    }
}

/// The journal may fail whoever asks it; what else goes wrong, a route says itself.
impl OperationOutput for ApiError {
    type Inner = ErrorResponse;

    fn inferred_responses(
        _: &mut GenContext,
        operation: &mut Operation,
    ) -> Vec<(Option<openapi::StatusCode>, openapi::Response)> {
        fails(operation, &[500, 503]);
        Vec::new()
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let again =
            matches!(self.status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS);
        let stranger = self.status == StatusCode::UNAUTHORIZED;
        let mut response = (self.status, Json(self.body)).into_response();
        if stranger {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if again {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(self.retry_after_s));
        }
        response
    }
}
