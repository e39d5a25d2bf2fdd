//! Why a request failed, as what the caller does next.

use antiphon_core::{ErrorResponse, visible};

/// Why a request failed. Each variant is something the caller does next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// Start the server or correct the address: there is no connection, and nothing was sent.
    #[error("{reason}")]
    NoConnection {
        /// The innermost cause.
        reason: String,
    },
    /// Retry later: the server does not answer, or the connection broke. With a command that
    /// carries no idempotency key, look first whether the server has carried it out.
    #[error("{reason}")]
    Unreachable {
        /// The innermost cause.
        reason: String,
    },
    /// Use another token.
    #[error("the server does not accept the token")]
    Unauthorized,
    /// Report the server's reason. [`ClientError::is_transient`] says whether a retry can help.
    #[error("HTTP {status}{}", suffix(.error))]
    Refused {
        /// HTTP status.
        status: u16,
        /// The server's reason.
        error: ErrorResponse,
    },
    /// Give up: the server is not Antiphon, or has another version.
    #[error("{reason}")]
    Protocol {
        /// What was unexpected.
        reason: String,
    },
    /// Open the stream again after the last event: it broke, and its retries are used up.
    #[error("{reason}")]
    StreamLost {
        /// The cause of the last failure.
        reason: String,
    },
}

impl ClientError {
    /// Whether the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::NoConnection { .. } | Self::Unreachable { .. } | Self::StreamLost { .. } => true,
            Self::Refused { status, .. } => matches!(status, 408 | 429 | 500..),
            Self::Unauthorized | Self::Protocol { .. } => false,
        }
    }

    /// Whether the server ends, and has done nothing for the request.
    pub fn is_stopping(&self) -> bool {
        match self {
            Self::Refused { error, .. } => {
                let cause = error.details.as_ref().and_then(|details| details.get("cause"));
                cause.is_some_and(|cause| cause == "stopping")
            }
            Self::NoConnection { .. }
            | Self::Unreachable { .. }
            | Self::StreamLost { .. }
            | Self::Unauthorized
            | Self::Protocol { .. } => false,
        }
    }

    /// Whether the server is in a state that excludes the command: it is carried out already, or cannot
    /// be any more.
    pub fn is_conflict(&self) -> bool {
        match self {
            Self::Refused { status, .. } => *status == 409,
            Self::NoConnection { .. }
            | Self::Unreachable { .. }
            | Self::StreamLost { .. }
            | Self::Unauthorized
            | Self::Protocol { .. } => false,
        }
    }

    /// Whether the server does not know what the request names.
    pub fn is_not_found(&self) -> bool {
        match self {
            Self::Refused { status, .. } => *status == 404,
            Self::NoConnection { .. }
            | Self::Unreachable { .. }
            | Self::StreamLost { .. }
            | Self::Unauthorized
            | Self::Protocol { .. } => false,
        }
    }

    pub(crate) fn protocol(reason: impl Into<String>) -> Self {
        Self::Protocol { reason: reason.into() }
    }

    /// A connection that failed. The innermost cause counts: the outer ones say "error sending request".
    pub(crate) fn unreachable(error: &reqwest::Error) -> Self {
        let mut cause: &dyn std::error::Error = error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        let reason = cause.to_string();
        if error.is_timeout() {
            let reason = "it does not answer in time".to_owned();
            return if error.is_connect() {
                Self::NoConnection { reason }
            } else {
                Self::Unreachable { reason }
            };
        }
        if error.is_connect() {
            Self::NoConnection { reason }
        } else {
            Self::Unreachable { reason }
        }
    }
}

fn suffix(error: &ErrorResponse) -> String {
    if error.message.is_empty() { String::new() } else { format!(": {}", visible(&error.message)) }
}
