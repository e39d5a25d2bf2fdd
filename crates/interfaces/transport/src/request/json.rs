//! JSON bodies: checks the content type, the size and the time, then parses.

use std::ops::Deref;
use std::sync::Arc;

use antiphon_core::ErrorCode;
use axum::extract::{FromRequest, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use futures_util::StreamExt;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::access::caller::Caller;
use crate::access::shared_limit::Reservation;
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
        serde_json::from_slice(&bytes).map(Self).map_err(|error| invalid::<T>(&bytes, &error))
    }
}

/// The error of a body that is not a `T`. The field is looked for only now: valid bodies are read without its cost.
fn invalid<T: DeserializeOwned>(bytes: &[u8], error: &serde_json::Error) -> ApiError {
    if bytes.trim_ascii_start().starts_with(b"[") {
        let reason = "a list, expected an object";
        return ApiError::invalid(format!("the body: {reason}")).of_field("body", reason);
    }
    let refused = ApiError::invalid(format!("the body: {error}"));
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let located = serde_path_to_error::deserialize::<_, T>(&mut json).err();
    let Some(located) = located else { return refused.of_field("body", &error.to_string()) };
    let (path, reason) = (located.path().to_string(), located.inner().to_string());
    refused.of_field(&field_of(&path, &reason), &error.to_string())
}

/// The field at a path that an error is about: the error of a whole object may name the field in it.
fn field_of(path: &str, reason: &str) -> String {
    let missing = reason.strip_prefix("missing field `").and_then(|rest| rest.split_once('`'));
    let nested = reason.split_once(": ").filter(|(place, _)| is_path(place));
    let named = missing.or(nested).map(|(name, _)| name);
    match (path, named) {
        (".", None) => "body".to_owned(),
        (".", Some(name)) => name.to_owned(),
        (path, Some(name)) => format!("{path}.{name}"),
        (path, None) => path.to_owned(),
    }
}

/// Whether a text is a place in a message, such as `content[0]`.
fn is_path(text: &str) -> bool {
    let index = text.strip_prefix("content[").and_then(|rest| rest.strip_suffix(']'));
    index.is_some_and(|index| index.chars().all(|c| c.is_ascii_digit()))
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

/// The whole body of a request. Its memory counts toward the limit of all bodies until it is dropped.
pub struct ReceivedBody {
    bytes: Vec<u8>,
    reserved: Option<Reservation>,
}

impl Deref for ReceivedBody {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The whole body of a request, of at most `bytes_max` bytes. Fails with 503 when the bodies that are being
/// received over all connections need too much memory.
pub async fn read_body(
    request: Request,
    state: &AppState,
    bytes_max: usize,
) -> Result<ReceivedBody, ApiError> {
    let reading = receive(request, state, bytes_max);
    let read = tokio::time::timeout(state.deps.limits.body_wait, reading).await;
    read.map_err(|_| too_slow())?
}

async fn receive(
    request: Request,
    state: &AppState,
    bytes_max: usize,
) -> Result<ReceivedBody, ApiError> {
    let caller = request.extensions().get::<Caller>().cloned();
    let mut chunks = request.into_body().into_data_stream();
    let mut body = ReceivedBody { bytes: Vec::new(), reserved: None };
    while let Some(chunk) = chunks.next().await {
        let chunk =
            chunk.map_err(|_| ApiError::invalid("the body is incomplete: send it again"))?;
        if body.bytes.len() + chunk.len() > bytes_max {
            return Err(too_large(bytes_max));
        }
        let amount = u32::try_from(chunk.len()).unwrap_or(u32::MAX);
        let more = state.body_bytes.reserve(caller.as_ref(), amount).ok_or_else(too_many)?;
        match &mut body.reserved {
            Some(reserved) => reserved.merge(more),
            none => *none = Some(more),
        }
        body.bytes.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn too_many() -> ApiError {
    let message = "too many bodies are being received at once: retry after `retry-after` seconds";
    ApiError::new(ErrorCode::ServiceUnavailable, message)
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
