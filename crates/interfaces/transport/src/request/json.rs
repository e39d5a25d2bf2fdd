//! JSON bodies: checks the content type, the size and the time, then parses.

use std::sync::Arc;

use antiphon_core::ErrorCode;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::api_error::ApiError;
use crate::openapi::{GenContext, Operation, OperationInput, fails};
use crate::state::AppState;

/// Extracts a JSON body. Fails with 400, 408, 413 or 415.
pub struct Json<T>(pub T);

impl<T: DeserializeOwned> FromRequest<Arc<AppState>> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &Arc<AppState>) -> Result<Self, ApiError> {
        check_content_type(request.headers())?;
        let bytes = read_body(request, state, state.deps.limits.body_bytes_max).await?;
        let read = serde_json::from_slice(&bytes);
        read.map(Self).map_err(|error| ApiError::invalid(format!("the body: {error}")))
    }
}

impl<T: JsonSchema> OperationInput for Json<T> {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        axum::Json::<T>::operation_input(context, operation);
        fails(operation, &[400, 408, 413, 415]);
    }
}

/// Refuses a request whose content type is not JSON with 415.
pub fn check_content_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(ApiError::with_status(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ErrorCode::InvalidRequest,
        "expected a JSON body with `content-type: application/json`",
    ))
}

/// The whole body of a request, of at most `bytes_max` bytes.
pub async fn read_body(
    mut request: Request,
    state: &AppState,
    bytes_max: usize,
) -> Result<Bytes, ApiError> {
    DefaultBodyLimit::max(bytes_max).apply(&mut request);
    let reading = Bytes::from_request(request, &());
    let bytes = tokio::time::timeout(state.deps.limits.body_wait, reading).await;
    bytes.map_err(|_| too_slow())?.map_err(|refused| {
        if refused.status() == StatusCode::PAYLOAD_TOO_LARGE {
            too_large(bytes_max)
        } else {
            ApiError::invalid("the body is incomplete: send it again")
        }
    })
}

pub(crate) fn too_large(bytes_max: usize) -> ApiError {
    ApiError::with_status(
        StatusCode::PAYLOAD_TOO_LARGE,
        ErrorCode::InvalidRequest,
        format!("the body is too large: at most {bytes_max} bytes"),
    )
}

fn too_slow() -> ApiError {
    ApiError::with_status(
        StatusCode::REQUEST_TIMEOUT,
        ErrorCode::InvalidRequest,
        "the body took too long: send it again",
    )
}
