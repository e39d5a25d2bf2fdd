//! Errors of orders: refused and not tried again, or unavailable and tried again.

use antiphon_core::{ErrorCode, ErrorResponse, OrderError};
use antiphon_runtime::{OrchestratorError, Rejection, ReplayError};

pub(super) fn refused(code: ErrorCode, message: String) -> OrderError {
    let code = serde_json::to_value(code).ok().and_then(|code| code.as_str().map(str::to_owned));
    OrderError::Refused { code: code.unwrap_or_default(), message }
}

pub(super) fn task_refused(error: ErrorResponse) -> OrderError {
    if error.code == ErrorCode::ServiceUnavailable {
        return OrderError::Unavailable { reason: error.message };
    }
    refused(error.code, error.message)
}

pub(super) fn rejected(rejection: &Rejection) -> OrderError {
    let code = match rejection {
        Rejection::UnknownAgent { .. } => ErrorCode::NotFound,
        Rejection::NotStarted { .. }
        | Rejection::Stopped { .. }
        | Rejection::CannotStart { .. } => ErrorCode::Conflict,
        Rejection::Full { .. } | Rejection::SenderFull { .. } => ErrorCode::RateLimitExceeded,
        Rejection::TooLong { .. } => ErrorCode::InvalidRequest,
        Rejection::Invalid { .. } => ErrorCode::InvalidMessage,
    };
    refused(code, rejection.to_string())
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` passes the error by value")]
pub(super) fn failed(error: OrchestratorError) -> OrderError {
    let code = match &error {
        OrchestratorError::Journal(_)
        | OrchestratorError::NotRunning { .. }
        | OrchestratorError::Stopping
        | OrchestratorError::Budget(_)
        | OrchestratorError::PeerUnavailable { .. }
        | OrchestratorError::Unresponsive { .. } => {
            return OrderError::Unavailable { reason: error.to_string() };
        }
        OrchestratorError::Replay(ReplayError::NoTask { .. })
        | OrchestratorError::NoApproval { .. }
        | OrchestratorError::NoSuchCall { .. } => ErrorCode::NotFound,
        OrchestratorError::Replay(ReplayError::OutOfOrder { .. })
        | OrchestratorError::Panicked { .. } => ErrorCode::InternalError,
        OrchestratorError::InboxFull { .. } => ErrorCode::RateLimitExceeded,
        OrchestratorError::CannotStart { .. }
        | OrchestratorError::Ended { .. }
        | OrchestratorError::PeerRefused { .. }
        | OrchestratorError::SessionExists { .. }
        | OrchestratorError::AlreadyDecided { .. } => ErrorCode::Conflict,
        OrchestratorError::Limit(_)
        | OrchestratorError::RaiseRefused { .. }
        | OrchestratorError::BadSchema { .. }
        | OrchestratorError::NotAnAnswer { .. }
        | OrchestratorError::CannotPlan { .. }
        | OrchestratorError::BadTool { .. }
        | OrchestratorError::NoModel { .. }
        | OrchestratorError::RuleNotSaved { .. }
        | OrchestratorError::ResultTooLong { .. } => ErrorCode::InvalidRequest,
    };
    refused(code, error.to_string())
}
