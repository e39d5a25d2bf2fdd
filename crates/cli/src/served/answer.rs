//! What a server answers, when it is not what was asked for: the same sentence and the same exit code
//! as when the command works alone.

use std::error::Error;

use antiphon_core::{ErrorCode, ErrorResponse};
use reqwest::Response;

use super::papers::Place;
use crate::failure::Failure;

/// How much is read of an answer, in bytes.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// What an error means to the shell.
pub(super) fn failure(place: &Place, error: ErrorResponse) -> Failure {
    let ErrorResponse { code, message, details } = error;
    let cause = details.as_ref().and_then(|details| details.get("cause")).map(String::as_str);
    match (code, cause) {
        (_, Some("limit" | "budget")) => Failure::refused(message),
        (_, Some("model" | "rule")) => Failure::usage(message),
        (_, Some("at_rest")) => Failure::unavailable(message),
        (ErrorCode::Unauthorized, _) => Failure::refused(format!(
            "the server at {place} does not take the token in .antiphon/token: end the server and start \
             it again"
        )),
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

/// The whole of an answer, or why it did not come.
pub(super) async fn body(mut response: Response) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| innermost(&error))? {
        if body.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err(format!("it answered with more than {ANSWER_BYTES_MAX} bytes"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The innermost reason counts: the outer ones say "error sending request".
pub(super) fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
