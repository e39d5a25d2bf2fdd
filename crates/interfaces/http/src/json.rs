//! JSON bodies: of the right kind, not too large, not too slow, and what was asked for.

use std::sync::Arc;

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::Operation;
use antiphon_core::ErrorCode;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::api_error::ApiError;
use crate::openapi::fails;
use crate::room::AppState;

/// A body that was read as JSON.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<AppState>> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, room: &Arc<AppState>) -> Result<Self, ApiError> {
        check_kind(request.headers())?;
        let bytes = read(request, room, room.doors.limits.body_bytes_max).await?;
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

/// Whether it says that it is JSON.
pub(crate) fn check_kind(headers: &HeaderMap) -> Result<(), ApiError> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(ApiError::with_status(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ErrorCode::InvalidRequest,
        "the body has to be JSON: send it with `content-type: application/json`",
    ))
}

/// A whole body, as it was sent.
pub(crate) async fn read(
    mut request: Request,
    room: &AppState,
    bytes_max: usize,
) -> Result<Bytes, ApiError> {
    DefaultBodyLimit::max(bytes_max).apply(&mut request);
    let reading = Bytes::from_request(request, &());
    let bytes = tokio::time::timeout(room.doors.limits.body_wait, reading).await;
    bytes.map_err(|_| too_slow())?.map_err(|refused| {
        if refused.status() == StatusCode::PAYLOAD_TOO_LARGE {
            too_large(bytes_max)
        } else {
            ApiError::invalid("the body broke off")
        }
    })
}

pub(crate) fn too_large(bytes_max: usize) -> ApiError {
    ApiError::with_status(
        StatusCode::PAYLOAD_TOO_LARGE,
        ErrorCode::InvalidRequest,
        format!("the body is too large: {bytes_max} bytes at most"),
    )
}

fn too_slow() -> ApiError {
    ApiError::with_status(
        StatusCode::REQUEST_TIMEOUT,
        ErrorCode::InvalidRequest,
        "the body took too long: send it again",
    )
}
