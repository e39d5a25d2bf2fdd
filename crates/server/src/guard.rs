//! Who comes in, and what everybody gets: a check before the request, a limit and a shield around it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use antiphon_core::ErrorCode;
use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_LENGTH, HOST, ORIGIN, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;

use crate::api_error::ApiError;
use crate::health;
use crate::json::too_large;
use crate::room::Room;

/// Lets a request through, or says why not.
pub(crate) async fn guard(State(room): State<Arc<Room>>, request: Request, next: Next) -> Response {
    let mut response = match check(&room, &request) {
        Ok(()) => answer(&room, request, next).await,
        Err(refused) => refused,
    };
    let headers = response.headers_mut();
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

async fn answer(room: &Room, request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let answering = AssertUnwindSafe(next.run(request)).catch_unwind();
    match tokio::time::timeout(room.doors.limits.answer_wait, answering).await {
        Ok(Ok(response)) => response,
        Ok(Err(_)) => {
            tracing::error!(http.method = %method, http.path = path, "a request panicked");
            let message = "a fault in the program: it has been logged";
            ApiError::new(ErrorCode::InternalError, message).into_response()
        }
        Err(_) => {
            let message = "this takes too long: look again later, what was accepted goes on";
            ApiError::new(ErrorCode::ServiceUnavailable, message).into_response()
        }
    }
}

#[expect(clippy::result_large_err, reason = "it is sent as it is, once")]
fn check(room: &Room, request: &Request) -> Result<(), Response> {
    let headers = request.headers();
    let refuse = |message| ApiError::new(ErrorCode::Forbidden, message).into_response();
    if !only(headers, &HOST).is_some_and(|host| room.hosts.has_host(host)) {
        return Err(refuse("this server does not go by that name: see `--allow-host`"));
    }
    if headers.contains_key(ORIGIN)
        && !only(headers, &ORIGIN).is_some_and(|origin| room.hosts.has_origin(origin))
    {
        return Err(refuse("pages from elsewhere may not ask here"));
    }
    if !health::is_open(request.uri().path()) {
        let shown = only(headers, &AUTHORIZATION).unwrap_or_default();
        if !room.doors.token.is_shown_by(shown.as_bytes()) {
            return Err(unauthorized());
        }
    }
    let length = only(headers, &CONTENT_LENGTH).and_then(|length| length.parse::<u64>().ok());
    let bytes_max = room.doors.limits.body_bytes_max;
    if length.is_some_and(|length| length > bytes_max as u64) {
        return Err(too_large(bytes_max).into_response());
    }
    Ok(())
}

/// The value of a header that is there once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        (None | Some(_), _) => None,
    }
}

fn unauthorized() -> Response {
    let message = "the token is missing or wrong: send it as `Authorization: Bearer TOKEN`";
    let mut response = ApiError::new(ErrorCode::Unauthorized, message).into_response();
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}
