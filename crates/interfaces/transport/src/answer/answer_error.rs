//! Why a request has no answer. Each interface writes it in its own shape.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use antiphon_core::port::{Clock, SystemClock};
use antiphon_core::{
    Approval, DomainError, ErrorCode, ErrorResponse, OutageWait, PEER_UNAVAILABLE, Question, TaskId,
};
use antiphon_runtime::{BudgetSpent, OrchestratorError};
use axum::Json;
use axum::body::to_bytes;
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::api_error::{ApiError, RETRY_AFTER_S, budget_details, budget_retry_after_s};
use crate::error_text::bounded;

/// Longest native error that is converted, in bytes.
const NATIVE_BYTES_MAX: usize = 64 * 1024;

/// OpenAI's code for a spend limit that is reached.
pub const QUOTA: &str = "insufficient_quota";

/// A request that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerError {
    /// HTTP status.
    pub status: StatusCode,
    /// What is wrong, then what to do.
    pub message: String,
    /// The field that is wrong.
    pub param: Option<String>,
    /// A stable code for programs.
    pub code: Option<String>,
    /// The spend limit that is reached.
    pub spent: Option<Box<BudgetSpent>>,
    /// When to ask again, in seconds; [`RETRY_AFTER_S`] when absent.
    pub retry_after_s: Option<NonZeroU32>,
    /// More details, in the native shape.
    pub details: BTreeMap<String, String>,
}

impl AnswerError {
    /// A field is wrong: 400.
    pub fn field(param: impl Into<String>, message: impl std::fmt::Display) -> Self {
        let (param, reason) = (bounded(param.into()), bounded(message.to_string()));
        let error = Self::new(StatusCode::BAD_REQUEST, format!("`{param}`: {reason}"));
        Self { param: Some(param), ..error }.because(reason)
    }

    /// The same error with the reason alone, for the native shape.
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.details.insert("reason".to_owned(), bounded(reason.into()));
        self
    }

    /// An error with a status.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            message: bounded(message.into()),
            param: None,
            code: None,
            spent: None,
            retry_after_s: None,
            details: BTreeMap::new(),
        }
    }

    /// The same error with a code.
    pub fn coded(self, code: &str) -> Self {
        Self { code: Some(code.to_owned()), ..self }
    }

    /// There is nothing of this name: 404.
    pub fn not_found(param: &str, message: impl std::fmt::Display) -> Self {
        Self { status: StatusCode::NOT_FOUND, ..Self::field(param, message) }
    }

    /// A message breaks a rule of canonical messages: 422.
    pub fn message(field: &str, error: &DomainError) -> Self {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        let message = bounded(format!("{field}: {error}"));
        // The reason begins with the name of a field of the message.
        let reason = error.reason();
        let name = reason.strip_prefix('`').and_then(|rest| rest.split_once('`'));
        let field = name.map_or_else(|| field.to_owned(), |(name, _)| format!("{field}.{name}"));
        Self { status, message, ..Self::field(field, reason).coded("invalid_message") }
    }

    /// The task waits for the decision of a person: 403, which no client retries by itself.
    pub fn needs_approval(task_id: &TaskId, approval: &Approval) -> Self {
        let Approval { approval_id, tool_name, reason, .. } = approval;
        let asks = match &approval.question {
            None => format!(
                "needs an approval of `{tool_name}`: decide with `antiphon approvals allow {approval_id}`"
            ),
            Some(Question::Plan(_)) => {
                format!("has a plan: accept it with `antiphon approvals allow {approval_id}`")
            }
            Some(Question::Choice(_)) => {
                format!("asks a question: answer it with `antiphon approvals answer {approval_id}`")
            }
        };
        let message = format!(
            "the agent {asks} or POST /v1/approvals/{approval_id}; then task {task_id} continues and has the answer, also for the same \
             Idempotency-Key"
        );
        let detail = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let details = BTreeMap::from([
            detail("approval_id", approval_id.as_str()),
            detail("task_id", task_id.as_str()),
            detail("tool_name", tool_name),
            detail("reason", reason),
        ]);
        let error = Self::new(StatusCode::FORBIDDEN, message).coded("approval_required");
        Self { details, ..error }
    }

    /// The server shuts down: 503.
    pub fn closing() -> Self {
        let message = "the server is shutting down: ask again later";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message).coded("closing")
    }

    /// An error of the orchestrator.
    pub async fn of(error: OrchestratorError) -> Self {
        let OrchestratorError::Budget(spent) = error else { return Self::native(error).await };
        let error = Self::new(StatusCode::SERVICE_UNAVAILABLE, spent.to_string());
        Self { spent: Some(Box::new(spent)), ..error.coded(QUOTA) }
    }

    /// An error that the native API has.
    pub async fn native(error: impl Into<ApiError>) -> Self {
        let response = error.into().into_response();
        let status = response.status();
        let body = to_bytes(response.into_body(), NATIVE_BYTES_MAX).await.unwrap_or_default();
        match serde_json::from_slice::<ErrorResponse>(&body) {
            Ok(ErrorResponse { message, details, .. }) => {
                let details = details.unwrap_or_default();
                Self { details, ..Self::new(status, message) }
            }
            Err(_) => Self::new(status, status.canonical_reason().unwrap_or("the request failed")),
        }
    }

    /// The error of a failed task.
    pub fn failed(detail: Option<&Value>) -> Self {
        let text = |name: &str| detail.and_then(|detail| detail.get(name)).and_then(Value::as_str);
        let code = text("code").unwrap_or("failed");
        let status = match code {
            "invalid_request" | "context_overflow" | "limit_reached" => StatusCode::BAD_REQUEST,
            "not_found" => StatusCode::NOT_FOUND,
            "rate_limited" => StatusCode::TOO_MANY_REQUESTS,
            "overloaded" | PEER_UNAVAILABLE => StatusCode::SERVICE_UNAVAILABLE,
            "invalid_output" => StatusCode::UNPROCESSABLE_ENTITY,
            "interrupted" | "failed" => StatusCode::INTERNAL_SERVER_ERROR,
            // All other codes are errors of the provider.
            _ => StatusCode::BAD_GATEWAY,
        };
        let code = if code == "context_overflow" { "context_length_exceeded" } else { code };
        Self::new(status, text("error").unwrap_or("the task failed")).coded(code)
    }

    /// The failure of a model that is away, until the next attempt: the rest of an open breaker, or what the provider
    /// asked for.
    pub fn away(wait: &OutageWait, detail: Option<&Value>, now: DateTime<Utc>) -> Self {
        // Rounded, not up: the attempts are spread over less than half a second more than the whole seconds.
        let left_s = (wait.next_at - now).num_milliseconds().max(0).saturating_add(500) / 1000;
        let retry_after_s = u32::try_from(left_s).ok().and_then(NonZeroU32::new);
        Self { retry_after_s, ..Self::failed(detail) }
    }

    /// The model started its answer again, and a part of the first one was sent.
    pub fn begun_again() -> Self {
        let message = "the model started its answer again, and it differs from the text already sent: ask again";
        Self::new(StatusCode::BAD_GATEWAY, message).coded("begun_again")
    }

    /// The task was canceled by another caller. The status asks clients not to retry.
    pub fn canceled() -> Self {
        Self::new(StatusCode::GONE, "the task was canceled").coded("canceled")
    }

    /// The response with this body: sets `Retry-After` where the status has it.
    pub fn respond(&self, body: Value) -> Response {
        let mut response = (self.status, Json(body)).into_response();
        if matches!(self.status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) {
            let wait = match &self.spent {
                Some(spent) => budget_retry_after_s(spent, SystemClock.now()),
                None => self.retry_after_s.map_or(RETRY_AFTER_S, |wait_s| wait_s.get().into()),
            };
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(wait));
        }
        response
    }

    /// The error in the native shape.
    pub fn native_body(&self) -> Value {
        let mut details = self.details.clone();
        for (name, value) in [("field", &self.param), ("cause", &self.code)] {
            if let Some(value) = value {
                details.insert(name.to_owned(), value.clone());
            }
        }
        if let Some(spent) = &self.spent {
            details = budget_details(spent);
        }
        let details = (!details.is_empty()).then_some(details);
        let (code, message) = (self.native_code(), self.message.clone());
        json!(ErrorResponse { code, message, details })
    }

    fn native_code(&self) -> ErrorCode {
        match self.status {
            StatusCode::UNAUTHORIZED => ErrorCode::Unauthorized,
            StatusCode::FORBIDDEN => ErrorCode::Forbidden,
            StatusCode::NOT_FOUND => ErrorCode::NotFound,
            StatusCode::CONFLICT | StatusCode::GONE => ErrorCode::Conflict,
            StatusCode::TOO_MANY_REQUESTS => ErrorCode::RateLimitExceeded,
            StatusCode::UNPROCESSABLE_ENTITY => ErrorCode::InvalidMessage,
            StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE => {
                ErrorCode::ServiceUnavailable
            }
            StatusCode::INTERNAL_SERVER_ERROR => ErrorCode::InternalError,
            _ => ErrorCode::InvalidRequest,
        }
    }
}
