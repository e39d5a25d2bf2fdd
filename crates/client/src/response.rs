//! Reading a response: bounded, and typed.

use std::collections::BTreeMap;

use antiphon_core::{ErrorCode, ErrorResponse};
use reqwest::{Response, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::error::ClientError;

/// Largest response that is not a stream, in bytes. A larger one is a protocol error.
pub const RESPONSE_BYTES_MAX: usize = 32 * 1024 * 1024;

/// A response whose status is a success.
pub(crate) async fn success(response: Response) -> Result<Response, ClientError> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    if status == StatusCode::UNAUTHORIZED {
        return Err(ClientError::Unauthorized);
    }
    if status.is_redirection() {
        // The token is not sent to a server that a redirect names.
        return Err(ClientError::protocol(format!(
            "HTTP {}: it redirects to another address, which is not followed: name that address, if you \
             trust it with the token",
            status.as_u16()
        )));
    }
    let body = body(response).await?;
    let status = status.as_u16();
    match error_response(status, &body) {
        Some(error) => Err(ClientError::Refused { status, error }),
        // A proxy on the way may answer for a server that does not.
        None if matches!(status, 408 | 429 | 500..) => {
            Err(ClientError::Unreachable { reason: format!("HTTP {status}") })
        }
        None => Err(ClientError::protocol(format!(
            "HTTP {status} without an error of Antiphon: is it a server of this version?"
        ))),
    }
}

/// The error of a server. A server of a later version may have codes that this client does not know: then the code is
/// that of the status.
fn error_response(status: u16, body: &[u8]) -> Option<ErrorResponse> {
    let AnyErrorResponse { code, message, details } = serde_json::from_slice(body).ok()?;
    let known = serde_json::from_value(serde_json::Value::String(code));
    let code = known.unwrap_or(match status {
        401 => ErrorCode::Unauthorized,
        403 => ErrorCode::Forbidden,
        404 => ErrorCode::NotFound,
        409 => ErrorCode::Conflict,
        429 => ErrorCode::RateLimitExceeded,
        503 => ErrorCode::ServiceUnavailable,
        500.. => ErrorCode::InternalError,
        _ => ErrorCode::InvalidRequest,
    });
    Some(ErrorResponse { code, message, details })
}

#[derive(Deserialize)]
struct AnyErrorResponse {
    code: String,
    message: String,
    #[serde(default)]
    details: Option<BTreeMap<String, String>>,
}

/// The JSON body of a response.
pub(crate) async fn read<T: DeserializeOwned>(response: Response) -> Result<T, ClientError> {
    let body = body(response).await?;
    serde_json::from_slice(&body).map_err(|error| {
        ClientError::protocol(format!(
            "the response cannot be read: is it a server of this version? ({error})"
        ))
    })
}

/// The whole body of a response.
pub(crate) async fn body(mut response: Response) -> Result<Vec<u8>, ClientError> {
    let mut body = Vec::new();
    let lost = |error| ClientError::unreachable(&error);
    while let Some(chunk) = response.chunk().await.map_err(lost)? {
        if body.len() + chunk.len() > RESPONSE_BYTES_MAX {
            let reason = format!("the response has more than {RESPONSE_BYTES_MAX} bytes");
            return Err(ClientError::protocol(reason));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
