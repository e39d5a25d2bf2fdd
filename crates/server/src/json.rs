//! JSON bodies: of the right kind, not too large, not too slow, and what was asked for.

use std::sync::Arc;

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::Operation;
use antiphon_core::ErrorCode;
use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::api_error::ApiError;
use crate::openapi::fails;
use crate::room::Room;

/// A body that was read as JSON.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<Room>> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, room: &Arc<Room>) -> Result<Self, ApiError> {
        let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/json") {
            return Err(ApiError::with_status(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                ErrorCode::InvalidRequest,
                "the body has to be JSON: send it with `content-type: application/json`",
            ));
        }
        let reading = Bytes::from_request(request, room);
        let bytes = tokio::time::timeout(room.doors.limits.body_wait, reading).await;
        let bytes = bytes.map_err(|_| too_slow())?.map_err(|refused| {
            if refused.status() == StatusCode::PAYLOAD_TOO_LARGE {
                too_large(room.doors.limits.body_bytes_max)
            } else {
                ApiError::invalid("the body broke off")
            }
        })?;
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
