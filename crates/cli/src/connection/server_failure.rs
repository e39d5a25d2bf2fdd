//! Failures of a server as failures of a command: the same sentence and the same exit code as when this
//! process does the work.

use antiphon_client::ClientError;
use antiphon_core::{ErrorCode, ErrorResponse};

use super::ProjectServer;
use crate::failure::Failure;

/// What a failed request means to the shell.
pub(super) fn failure(server: &ProjectServer, error: ClientError) -> Failure {
    let endpoint = server.client.endpoint();
    match error {
        ClientError::NoConnection { reason } => Failure::unavailable(format!(
            "no server answers at {endpoint} ({reason}): start it there with `antiphon serve`, or check \
             the address"
        )),
        ClientError::Unreachable { reason } | ClientError::StreamLost { reason } => {
            Failure::unavailable(format!(
                "the connection to the server at {endpoint} broke ({reason}): see with `antiphon tasks list` \
                 what it has done, and start it again if it has stopped"
            ))
        }
        ClientError::Unauthorized if server.is_named() => Failure::refused(format!(
            "the server at {endpoint} does not accept the token: use what `antiphon token` prints in the \
             server's project, or an API key (`antiphon keys new` there), with --token-file FILE or \
             ANTIPHON_TOKEN"
        )),
        ClientError::Unauthorized => Failure::refused(format!(
            "the server at {endpoint} does not accept the token: stop the server and start it again"
        )),
        ClientError::Refused { error, .. } => Failure::from_response(error),
        ClientError::Protocol { reason } => Failure::unavailable(format!(
            "the server at {endpoint} sent an unexpected answer: is it of this version? ({reason})"
        )),
    }
}

impl Failure {
    /// What the error of an interface means to the shell.
    pub(crate) fn from_response(error: ErrorResponse) -> Self {
        let ErrorResponse { code, message, details } = error;
        let cause = details.as_ref().and_then(|details| details.get("cause")).map(String::as_str);
        match (code, cause) {
            (_, Some("limit" | "budget")) => Failure::refused(message),
            (_, Some("model" | "rule")) => Failure::usage(message),
            (_, Some("at_rest")) => Failure::unavailable(message),
            (ErrorCode::Unauthorized, _) => {
                Failure::refused(format!("the server does not accept the token: {message}"))
            }
            (ErrorCode::Forbidden, _) => Failure::refused(message),
            (ErrorCode::RateLimitExceeded | ErrorCode::ServiceUnavailable, _) => {
                Failure::unavailable(message)
            }
            (ErrorCode::InternalError, _) => Failure::failed(message),
            (
                ErrorCode::InvalidRequest
                | ErrorCode::NotFound
                | ErrorCode::Conflict
                | ErrorCode::InvalidStateTransition
                | ErrorCode::InvalidMessage
                | ErrorCode::DomainViolation,
                _,
            ) => Failure::usage(message),
        }
    }
}
