//! Why a request to a project was not done.

use std::collections::BTreeMap;

use antiphon_core::{ErrorCode, ErrorResponse};
use antiphon_runtime::OrchestratorError;

/// Why a request was not done. An interface turns it into its own error shape.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The request is wrong, or its caller may not make it. The client changes the request.
    #[error("{}", .0.message)]
    Refused(ErrorResponse),
    /// The orchestrator refused the request or failed.
    #[error(transparent)]
    Orchestrator(#[from] OrchestratorError),
    /// The error of one part of a request.
    #[error("{part}: {error}")]
    About {
        /// The part, such as `targets[0]`.
        part: String,
        /// What is wrong with the part.
        error: Box<RequestError>,
    },
}

impl From<ErrorResponse> for RequestError {
    fn from(refused: ErrorResponse) -> Self {
        Self::Refused(refused)
    }
}

/// A request that cannot be understood or breaks a limit.
pub fn invalid_request(message: impl Into<String>) -> ErrorResponse {
    refused(ErrorCode::InvalidRequest, message)
}

/// A request that its caller may not make.
pub fn forbidden(message: impl Into<String>) -> ErrorResponse {
    refused(ErrorCode::Forbidden, message)
}

/// A request with a wrong field: what it is, and why, in `details` too.
pub(crate) fn refused_field(code: ErrorCode, field: &str, reason: String) -> ErrorResponse {
    let detail = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let details = BTreeMap::from([detail("field", field), detail("reason", &reason)]);
    ErrorResponse { code, message: reason, details: Some(details) }
}

pub(crate) fn refused(code: ErrorCode, message: impl Into<String>) -> ErrorResponse {
    ErrorResponse { code, message: message.into(), details: None }
}
