//! The domain's own error, and the shape in which every native endpoint reports one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::AgentState;

/// A rule of the domain was broken by what somebody asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DomainError {
    /// The state machine has no such arrow.
    #[error("invalid state transition from {from} to {to}")]
    InvalidStateTransition {
        /// Where the agent is.
        from: AgentState,
        /// Where it was told to go.
        to: AgentState,
    },
    /// The message breaks a rule of its kind.
    #[error("invalid message: {reason}")]
    InvalidMessage {
        /// Which field and why.
        reason: String,
    },
    /// Any other rule.
    #[error("domain rule violated: {rule}")]
    DomainViolation {
        /// The rule.
        rule: String,
    },
}

impl DomainError {
    /// What was broken, without the kind of rule.
    pub(crate) fn reason(&self) -> String {
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

/// What went wrong, as a stable word for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ErrorCode {
    /// The request cannot be understood or breaks a limit.
    InvalidRequest,
    /// No valid key or token.
    Unauthorized,
    /// A valid key of too low a level.
    Forbidden,
    /// No such thing, or not for this caller.
    NotFound,
    /// Somebody else was first.
    Conflict,
    /// Too many requests; `details` says when to come back.
    RateLimitExceeded,
    /// A fault of ours.
    InternalError,
    /// A dependency is down or a budget is spent.
    ServiceUnavailable,
    /// See [`DomainError::InvalidStateTransition`].
    InvalidStateTransition,
    /// See [`DomainError::InvalidMessage`].
    InvalidMessage,
    /// See [`DomainError::DomainViolation`].
    DomainViolation,
}

/// The one error body of every native endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorResponse {
    /// For programs.
    pub code: ErrorCode,
    /// For people: what happened and what to do next.
    pub message: String,
    /// Which field, which limit, how long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<BTreeMap<String, String>>,
}

impl From<&DomainError> for ErrorResponse {
    fn from(error: &DomainError) -> Self {
        Self { code: error.code(), message: error.to_string(), details: None }
    }
}
