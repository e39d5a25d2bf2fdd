//! The error shape of the native API, with its HTTP status.

use std::collections::BTreeMap;

use antiphon_core::port::{Clock, JournalError, SystemClock};
use antiphon_core::{ErrorCode, ErrorResponse};
use antiphon_keys::RateDecision;
use antiphon_project::{RequestError, dollars};
use antiphon_runtime::{BudgetSpent, OrchestratorError, Rejection, ReplayError};
use axum::Json;
use axum::http::header::{CONNECTION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::Value;

use crate::error_text::bounded;
use crate::openapi::{
    DescribedStatus, GenContext, Operation, OperationOutput, ResponseDescription, fails,
};

/// Default of `retry-after`, in seconds.
pub const RETRY_AFTER_S: u64 = 1;

/// `retry-after` of a server that is stopping, in seconds: about as long as a restart takes.
const STOPPING_RETRY_AFTER_S: u64 = 5;

/// A request that failed: an [`ErrorResponse`] with its HTTP status.
#[derive(Debug)]
pub struct ApiError {
    status: StatusCode,
    body: ErrorResponse,
    /// Value of `retry-after`, in seconds, for statuses that have the header.
    retry_after_s: u64,
    /// Whether the connection ends with the response.
    is_last: bool,
}

/// The native error that a response holds. The guard writes it in another shape where an interface has one.
#[derive(Debug, Clone)]
pub(crate) struct NativeError(pub(crate) ErrorResponse);

impl ApiError {
    /// An error with the status of its code.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::with_status(status(code), code, message)
    }

    /// An error of HTTP itself, whose status does not follow from the code.
    pub fn with_status(status: StatusCode, code: ErrorCode, message: impl Into<String>) -> Self {
        let body = ErrorResponse { code, message: message.into(), details: None };
        Self { status, body, retry_after_s: RETRY_AFTER_S, is_last: false }
    }

    /// A request that cannot be understood or breaks a limit: 400.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidRequest, message)
    }

    /// Its HTTP status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Its body, for an interface that has an error shape of its own.
    pub fn body(&self) -> &ErrorResponse {
        &self.body
    }

    /// The same error, about this field of the body.
    pub(crate) fn of_field(mut self, field: &str, reason: &str) -> Self {
        self.body.details = Some(named_details(field, reason));
        self
    }

    /// The same error, about a part of the request. Its details name the field in that part, or the part.
    fn about(mut self, part: &str) -> Self {
        let message = &self.body.message;
        let details = self.body.details.take().or_else(|| field_details(message));
        self.body.details = match details {
            Some(mut details) => {
                let field = details.get("field").map(|field| format!("{part}.{field}"));
                details.insert("field".to_owned(), field.unwrap_or_else(|| part.to_owned()));
                Some(details)
            }
            None if self.status.is_client_error() => Some(named_details(part, message)),
            None => None,
        };
        self.body.message = format!("{part}: {message}");
        self
    }

    /// A key or webhook source beyond its rate limit: 429, with the limit in `details`.
    pub fn rate_limited(verdict: &RateDecision) -> Self {
        let message = "rate limit exceeded: retry after `retry-after` seconds";
        let mut refused = Self::new(ErrorCode::RateLimitExceeded, message);
        refused.body.details = details(verdict.details());
        refused
    }

    /// A wrong token or key beyond the limit of wrong ones: 429, with the limit in `details`, and the connection ends.
    pub(crate) fn too_many_wrong_keys(verdict: &RateDecision) -> Self {
        let message = "too many requests with a wrong token or key: check it, and retry after `retry-after` \
                       seconds";
        let mut refused = Self::new(ErrorCode::RateLimitExceeded, message);
        refused.body.details = details(verdict.details());
        let retry_after_s = verdict.retry_after_s().unwrap_or(RETRY_AFTER_S);
        Self { retry_after_s, is_last: true, ..refused }
    }

    /// The spend limit is reached: 503 until the limit resets.
    fn budget_spent(spent: &BudgetSpent) -> Self {
        let mut refused = Self::new(ErrorCode::ServiceUnavailable, spent.to_string());
        refused.body.details = Some(budget_details(spent));
        refused.retry_after_s = budget_retry_after_s(spent, SystemClock.now());
        refused
    }
}

/// `field` and `reason` of a message about one field: the field in backticks, a colon, the reason.
fn field_details(message: &str) -> Option<BTreeMap<String, String>> {
    let (field, reason) = message.strip_prefix('`')?.split_once("`: ")?;
    if field.contains('`') {
        return None;
    }
    Some(named_details(field, reason))
}

fn named_details(field: &str, reason: &str) -> BTreeMap<String, String> {
    let detail = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    BTreeMap::from([detail("field", field), detail("reason", reason)])
}

/// Details of an error for a spend limit that is reached: which limit, how much, and when it resets.
pub fn budget_details(spent: &BudgetSpent) -> BTreeMap<String, String> {
    let resets_at = spent.resets_at.to_rfc3339_opts(SecondsFormat::AutoSi, true);
    let mut details: BTreeMap<String, String> = [
        ("cause", "budget".to_owned()),
        ("scope", spent.scope.as_str().to_owned()),
        ("period", spent.window.as_str().to_owned()),
        ("limit_usd", dollars(spent.limit)),
        ("spent_usd", dollars(spent.spent)),
        ("resets_at", resets_at),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    if let Some(id) = spent.scope.key_id() {
        details.insert("key_id".to_owned(), id.to_owned());
    }
    details
}

/// Seconds from `now` until a spend limit resets, rounded up.
pub fn budget_retry_after_s(spent: &BudgetSpent, now: DateTime<Utc>) -> u64 {
    let wait = (spent.resets_at - now).to_std().unwrap_or_default();
    wait.as_secs().saturating_add(1)
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

/// The status of every error with this code.
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
        OrchestratorError::Replay(ReplayError::OutOfOrder { .. })
        | OrchestratorError::Panicked { .. } => ErrorCode::InternalError,
        OrchestratorError::InboxFull { .. } => ErrorCode::RateLimitExceeded,
        OrchestratorError::Limit(_)
        | OrchestratorError::BadSchema { .. }
        | OrchestratorError::NotAnAnswer { .. }
        | OrchestratorError::CannotPlan { .. }
        | OrchestratorError::BadTool { .. }
        | OrchestratorError::RaiseRefused { .. }
        | OrchestratorError::ResultTooLong { .. } => ErrorCode::InvalidRequest,
        OrchestratorError::NotRunning { .. }
        | OrchestratorError::CannotStart { .. }
        | OrchestratorError::Ended { .. }
        | OrchestratorError::PeerRefused { .. }
        | OrchestratorError::SessionExists { .. }
        | OrchestratorError::AlreadyDecided { .. } => ErrorCode::Conflict,
        OrchestratorError::Budget(_)
        | OrchestratorError::PeerUnavailable { .. }
        | OrchestratorError::NoModel { .. }
        | OrchestratorError::RuleNotSaved { .. }
        | OrchestratorError::Stopping
        | OrchestratorError::Unresponsive { .. } => ErrorCode::ServiceUnavailable,
    }
}

/// The cause in one word, where the code alone does not say what to fix.
fn cause(error: &OrchestratorError) -> Option<&'static str> {
    match error {
        OrchestratorError::Limit(_) => Some("limit"),
        OrchestratorError::NoModel { .. } => Some("model"),
        OrchestratorError::RuleNotSaved { .. } => Some("rule"),
        OrchestratorError::NotRunning { .. } => Some("at_rest"),
        OrchestratorError::Budget(_) => Some("budget"),
        OrchestratorError::Stopping => Some("stopping"),
        OrchestratorError::PeerUnavailable { .. } | OrchestratorError::PeerRefused { .. } => {
            Some("peer")
        }
        OrchestratorError::Journal(JournalError::Unavailable { .. }) => Some("journal"),
        OrchestratorError::Journal(
            JournalError::Stale { .. }
            | JournalError::Ended { .. }
            | JournalError::Invalid { .. }
            | JournalError::Corrupt { .. },
        )
        | OrchestratorError::Replay(_)
        | OrchestratorError::InboxFull { .. }
        | OrchestratorError::BadSchema { .. }
        | OrchestratorError::NotAnAnswer { .. }
        | OrchestratorError::CannotPlan { .. }
        | OrchestratorError::BadTool { .. }
        | OrchestratorError::RaiseRefused { .. }
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
            return Self::budget_spent(spent);
        }
        let details = cause(&error).map(|cause| ("cause".to_owned(), cause.to_owned()));
        let mut refused = Self::new(code(&error), error.to_string());
        if error == OrchestratorError::Stopping {
            refused.retry_after_s = STOPPING_RETRY_AFTER_S;
        }
        refused.body.details = details.map(|detail| BTreeMap::from([detail]));
        refused
    }
}

/// A rejected interaction, with its reason and the fields of the rejection in `details`.
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

impl From<RequestError> for ApiError {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Refused(refused) => refused.into(),
            RequestError::Orchestrator(error) => error.into(),
            RequestError::About { part, error } => Self::from(*error).about(&part),
        }
    }
}

impl From<ErrorResponse> for ApiError {
    fn from(body: ErrorResponse) -> Self {
        Self { status: status(body.code), body, retry_after_s: RETRY_AFTER_S, is_last: false }
    }
}

/// Any handler that uses the journal may fail with 500 or 503; a route describes its other errors itself.
impl OperationOutput for ApiError {
    type Inner = ErrorResponse;

    fn inferred_responses(
        _: &mut GenContext,
        operation: &mut Operation,
    ) -> Vec<(Option<DescribedStatus>, ResponseDescription)> {
        fails(operation, &[500, 503]);
        Vec::new()
    }
}

impl IntoResponse for ApiError {
    fn into_response(mut self) -> Response {
        if self.body.details.is_none() {
            self.body.details = field_details(&self.body.message);
        }
        self.body.message = bounded(self.body.message);
        for value in self.body.details.iter_mut().flat_map(BTreeMap::values_mut) {
            *value = bounded(std::mem::take(value));
        }
        let is_retryable =
            matches!(self.status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS);
        let is_unauthorized = self.status == StatusCode::UNAUTHORIZED;
        let mut response = (self.status, Json(&self.body)).into_response();
        response.extensions_mut().insert(NativeError(self.body));
        if self.is_last {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if is_unauthorized {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if is_retryable {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(self.retry_after_s));
        }
        response
    }
}
