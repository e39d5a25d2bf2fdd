//! What a peer answers, when it is not what was asked for.

use antiphon_core::{ErrorResponse, visible};
use reqwest::{Response, StatusCode};

/// How much is read of an answer that is not a stream, in bytes.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// How much of an error is repeated, in characters.
const REASON_CHARS_MAX: usize = 300;

/// Why a peer did not do as asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Ask again.
    Lost(String),
    /// It is as we want it already, or can no longer be so.
    Conflict(String),
    /// Give up.
    Refused(String),
}

/// An answer that is a success, or what it means.
pub(crate) async fn success(response: Response) -> Result<Response, Failure> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let body = body(response).await.unwrap_or_default();
    let said = match serde_json::from_slice::<ErrorResponse>(&body) {
        Ok(error) => error.message,
        Err(_) => String::new(),
    };
    let said: String = visible(&said).chars().take(REASON_CHARS_MAX).collect();
    let told = if said.is_empty() { String::new() } else { format!(": {said}") };
    Err(match status {
        StatusCode::UNAUTHORIZED => Failure::Refused("it does not take our token".to_owned()),
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => {
            Failure::Lost(format!("HTTP {}{told}", status.as_u16()))
        }
        StatusCode::CONFLICT => Failure::Conflict(said),
        _ if status.is_server_error() => Failure::Lost(format!("HTTP {}{told}", status.as_u16())),
        _ => Failure::Refused(format!("HTTP {}{told}", status.as_u16())),
    })
}

/// The whole of an answer.
pub(crate) async fn body(mut response: Response) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| lost(&error))? {
        if body.len() + chunk.len() > ANSWER_BYTES_MAX {
            let reason = format!("it answered with more than {ANSWER_BYTES_MAX} bytes");
            return Err(Failure::Refused(reason));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// A connection that broke. The innermost reason counts: the outer ones say "error sending request".
pub(crate) fn lost(error: &reqwest::Error) -> Failure {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    Failure::Lost(cause.to_string())
}
