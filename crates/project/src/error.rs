//! Why a project's operation did not happen. Each kind is something the caller does next; the text says
//! what is wrong and what to do. Interfaces map the kind to their own codes.

use std::io;
use std::path::Path;

use antiphon_core::{ErrorCode, ErrorResponse};
use antiphon_keys::KeyRingError;
use antiphon_runtime::{OrchestratorError, Rejection};
use antiphon_sqlite::{BackupError, OpenError};
use thiserror::Error;

/// The cause of a refusal by a process that ends.
pub(crate) const STOPPING: &str = "stopping";

/// Why an operation on a project failed, with a text for the user.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProjectError {
    /// The request, a setting or a file is invalid. Nothing was tried; correct it.
    #[error("{0}")]
    InvalidInput(String),
    /// A limit, a budget or a permission forbids it.
    #[error("{0}")]
    Refused(String),
    /// A dependency does not answer, or another process holds it. Trying again later may succeed.
    #[error("{0}")]
    Unavailable(String),
    /// The process that owns the journal ends, or has ended, and has done nothing for the request. The next owner takes
    /// it.
    #[error("{0}")]
    OwnerEnds(String),
    /// It was tried and failed.
    #[error("{0}")]
    Failed(String),
}

impl From<ErrorResponse> for ProjectError {
    fn from(error: ErrorResponse) -> Self {
        let ErrorResponse { code, message, details } = error;
        let cause = details.as_ref().and_then(|details| details.get("cause")).map(String::as_str);
        match (code, cause) {
            (_, Some("limit" | "budget")) => Self::Refused(message),
            (_, Some("model" | "rule")) => Self::InvalidInput(message),
            (_, Some("at_rest")) => Self::Unavailable(message),
            (_, Some(STOPPING)) => Self::OwnerEnds(message),
            (ErrorCode::Unauthorized, _) => {
                Self::Refused(format!("the server does not accept the token: {message}"))
            }
            (ErrorCode::Forbidden, _) => Self::Refused(message),
            (ErrorCode::RateLimitExceeded | ErrorCode::ServiceUnavailable, _) => {
                Self::Unavailable(message)
            }
            (ErrorCode::InternalError, _) => Self::Failed(message),
            (
                ErrorCode::InvalidRequest
                | ErrorCode::NotFound
                | ErrorCode::Conflict
                | ErrorCode::InvalidStateTransition
                | ErrorCode::InvalidMessage
                | ErrorCode::DomainViolation,
                _,
            ) => Self::InvalidInput(message),
        }
    }
}

impl From<OpenError> for ProjectError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Owned { .. } => Self::Unavailable(error.to_string()),
            OpenError::Damaged { .. } => Self::InvalidInput(format!(
                "{error}. Bring back a backup with `antiphon restore --force FILE`, or save what can still be \
                 read with `antiphon journal repair`"
            )),
            OpenError::Later { .. } | OpenError::Earlier { .. } | OpenError::Unusable { .. } => {
                Self::InvalidInput(error.to_string())
            }
        }
    }
}

impl From<OrchestratorError> for ProjectError {
    fn from(error: OrchestratorError) -> Self {
        let message = error.to_string();
        match error {
            OrchestratorError::Journal(_)
            | OrchestratorError::InboxFull { .. }
            | OrchestratorError::PeerUnavailable { .. }
            | OrchestratorError::NotRunning { .. }
            | OrchestratorError::Unresponsive { .. } => Self::Unavailable(message),
            OrchestratorError::Stopping => Self::OwnerEnds(message),
            OrchestratorError::Limit(_)
            | OrchestratorError::Budget(_)
            | OrchestratorError::PeerRefused { .. } => Self::Refused(message),
            OrchestratorError::Panicked { .. } => Self::Failed(message),
            OrchestratorError::Replay(_)
            | OrchestratorError::NoModel { .. }
            | OrchestratorError::BadSchema { .. }
            | OrchestratorError::NotAnAnswer { .. }
            | OrchestratorError::CannotPlan { .. }
            | OrchestratorError::BadTool { .. }
            | OrchestratorError::NoSuchCall { .. }
            | OrchestratorError::ResultTooLong { .. }
            | OrchestratorError::NoApproval { .. }
            | OrchestratorError::AlreadyDecided { .. }
            | OrchestratorError::RaiseRefused { .. }
            | OrchestratorError::RuleNotSaved { .. }
            | OrchestratorError::CannotStart { .. }
            | OrchestratorError::SessionExists { .. }
            | OrchestratorError::Ended { .. } => Self::InvalidInput(message),
        }
    }
}

impl From<Rejection> for ProjectError {
    fn from(rejection: Rejection) -> Self {
        let message = rejection.to_string();
        if rejection.is_temporary() {
            Self::Unavailable(message)
        } else {
            Self::InvalidInput(message)
        }
    }
}

impl From<KeyRingError> for ProjectError {
    fn from(error: KeyRingError) -> Self {
        let message = error.to_string();
        match error {
            KeyRingError::Busy { .. } => Self::Unavailable(message),
            KeyRingError::Exposed { .. } | KeyRingError::Foreign { .. } => Self::Refused(message),
            KeyRingError::Unusable { .. }
            | KeyRingError::Malformed { .. }
            | KeyRingError::Full
            | KeyRingError::NoSuchKey { .. }
            | KeyRingError::Inactive { .. }
            | KeyRingError::ExpiresInThePast
            | KeyRingError::GraceTooLong
            | KeyRingError::AgentAdmin
            | KeyRingError::OwnScope => Self::InvalidInput(message),
        }
    }
}

/// A file or folder that cannot be used, with the reason of the system.
pub(crate) fn unusable(path: &Path, error: &io::Error) -> ProjectError {
    ProjectError::InvalidInput(format!("cannot use {}: {error}", path.display()))
}

impl From<BackupError> for ProjectError {
    fn from(error: BackupError) -> Self {
        let message = error.to_string();
        match error {
            BackupError::Journal(error) => error.into(),
            BackupError::InUse { .. } => {
                Self::Unavailable(format!("{message}: try again when it is done"))
            }
            BackupError::NotAFile { .. } => {
                Self::InvalidInput(format!("{message}: name another one"))
            }
            BackupError::Exists { .. }
            | BackupError::Itself { .. }
            | BackupError::BelongsToJournal { .. }
            | BackupError::NoExchange { .. }
            | BackupError::Unwritable { .. } => Self::InvalidInput(message),
        }
    }
}
