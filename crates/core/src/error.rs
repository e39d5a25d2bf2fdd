//! The domain's own error, and the error body of every native endpoint.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::AgentState;

/// A request breaks a rule of the domain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DomainError {
    /// The state machine has no such transition.
    #[error("invalid state transition from {from} to {to}")]
    InvalidStateTransition {
        /// Current state of the agent.
        from: AgentState,
        /// Requested state.
        to: AgentState,
    },
    /// The message breaks a rule of its type.
    #[error("invalid message: {reason}")]
    InvalidMessage {
        /// Which field is wrong, and why.
        reason: String,
    },
    /// Another rule is broken.
    #[error("domain rule violated: {rule}")]
    DomainViolation {
        /// The rule.
        rule: String,
    },
}

impl DomainError {
    /// The reason, without the kind of rule.
    pub fn reason(&self) -> String {
        match self {
            Self::InvalidStateTransition { .. } => self.to_string(),
            Self::InvalidMessage { reason: text } | Self::DomainViolation { rule: text } => {
                text.clone()
            }
        }
    }

    /// The code this error has in an [`ErrorResponse`].
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::InvalidStateTransition { .. } => ErrorCode::InvalidStateTransition,
            Self::InvalidMessage { .. } => ErrorCode::InvalidMessage,
            Self::DomainViolation { .. } => ErrorCode::DomainViolation,
        }
    }
}

/// Error code for programs; stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ErrorCode {
    /// The request is malformed or exceeds a limit.
    InvalidRequest,
    /// Missing or invalid key or token.
    Unauthorized,
    /// The key is valid, but its level is too low.
    Forbidden,
    /// Not found, or not visible to this caller.
    NotFound,
    /// A conflict: another request was first.
    Conflict,
    /// Too many requests; `details` says how long to wait.
    RateLimitExceeded,
    /// An internal error.
    InternalError,
    /// A dependency is down or a budget is used up.
    ServiceUnavailable,
    /// See [`DomainError::InvalidStateTransition`].
    InvalidStateTransition,
    /// See [`DomainError::InvalidMessage`].
    InvalidMessage,
    /// See [`DomainError::DomainViolation`].
    DomainViolation,
}

/// Error body of every native endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorResponse {
    /// Error code, for programs.
    pub code: ErrorCode,
    /// Message for people: what happened and what to do next.
    pub message: String,
    /// Structured details, such as the field, the limit or the time to wait. Absent when there are none.
    #[serde(default, skip_serializing_if = "no_details")]
    pub details: Option<BTreeMap<String, String>>,
}

#[expect(clippy::ref_option, reason = "the signature is serde's")]
fn no_details(details: &Option<BTreeMap<String, String>>) -> bool {
    details.as_ref().is_none_or(BTreeMap::is_empty)
}

impl From<&DomainError> for ErrorResponse {
    fn from(error: &DomainError) -> Self {
        Self { code: error.code(), message: error.to_string(), details: None }
    }
}
