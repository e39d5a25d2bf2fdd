//! Who comes in, and what everybody gets: a check before the request, a limit and a shield around it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use antiphon_core::ErrorCode;
use antiphon_core::port::{Clock, SystemClock};
use antiphon_keys::Verdict;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, HOST,
    ORIGIN, REFERRER_POLICY, TRANSFER_ENCODING, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;

use crate::api_error::ApiError;
use crate::caller::Caller;
use crate::json::too_large;
use crate::listeners::Via;
use crate::room::AppState;
use crate::webhooks;

/// What every answer says of itself. One that says otherwise, a page, is left as it is.
const SAID: [(HeaderName, &str); 5] = [
    (CACHE_CONTROL, "no-store"),
    (CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    (REFERRER_POLICY, "no-referrer"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
];

/// Paths that need no token.
const OPEN: [&str; 5] = ["/health", "/health/live", "/health/ready", "/openapi.json", "/docs"];

/// Whether this path needs no token.
pub(crate) fn is_open(path: &str) -> bool {
    OPEN.contains(&path)
}

/// Lets a request through, or says why not.
pub(crate) async fn guard(
    State(room): State<Arc<AppState>>,
    request: Request,
    next: Next,
) -> Response {
    // One whose length is also announced can hide another behind it: it is the last of its connection.
    let is_last = request.headers().contains_key(TRANSFER_ENCODING);
    let mut response = match check(&room, &request) {
        Ok((caller, verdict)) => {
            let mut response = match may(&room, caller.as_ref(), verdict.as_ref(), &request) {
                Ok(()) => answer(&room, caller, request, next).await,
                Err(refused) => refused.into_response(),
            };
            count_down(response.headers_mut(), verdict.as_ref());
            response
        }
        Err(refused) => refused.into_response(),
    };
    if is_last {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    for (name, value) in SAID {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

async fn answer(
    room: &AppState,
    caller: Option<Caller>,
    mut request: Request,
    next: Next,
) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    if let Some(caller) = caller {
        request.extensions_mut().insert(caller);
    }
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

/// Who asks, where that has to be known.
fn check(
    room: &AppState,
    request: &Request,
) -> Result<(Option<Caller>, Option<Verdict>), ApiError> {
    let headers = request.headers();
    let refuse = |message| ApiError::new(ErrorCode::Forbidden, message);
    let via = request.extensions().get::<Via>().copied().unwrap_or(Via::Address);
    if !only(headers, &HOST).is_some_and(|host| room.hosts.has_host(host, via)) {
        return Err(refuse("this server does not go by that name: see `--allow-host`"));
    }
    if headers.contains_key(ORIGIN)
        && !only(headers, &ORIGIN).is_some_and(|origin| room.hosts.has_origin(origin))
    {
        return Err(refuse("pages from elsewhere may not ask here"));
    }
    if is_open(request.uri().path()) {
        return Ok((None, None));
    }
    if webhooks::is_signed(request.method(), route(request)) {
        if headers.contains_key(ORIGIN) {
            return Err(refuse("pages may not send events"));
        }
        return Ok((None, None));
    }
    let shown = only(headers, &AUTHORIZATION).unwrap_or_default();
    let (caller, verdict) = Caller::admit(room, shown, SystemClock.now())?;
    Ok((Some(caller), verdict))
}

/// Which of our routes it is for, if any.
fn route(request: &Request) -> Option<&str> {
    request.extensions().get::<MatchedPath>().map(MatchedPath::as_str)
}

/// Whether they may ask this, now.
fn may(
    room: &AppState,
    caller: Option<&Caller>,
    verdict: Option<&Verdict>,
    request: &Request,
) -> Result<(), ApiError> {
    if let Some(verdict) = verdict.filter(|verdict| !verdict.is_allowed()) {
        return Err(ApiError::too_often(verdict));
    }
    if let Some(caller) = caller {
        caller.may_ask(request.method(), route(request))?;
    }
    let length = only(request.headers(), &CONTENT_LENGTH);
    let length = length.and_then(|length| length.parse::<u64>().ok());
    let bytes_max = room.doors.limits.body_bytes_max;
    if length.is_some_and(|length| length > bytes_max as u64) {
        return Err(too_large(bytes_max));
    }
    Ok(())
}

/// The value of a header that is there once.
pub(crate) fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        (None | Some(_), _) => None,
    }
}

/// Tells how often they may still come.
pub(crate) fn count_down(headers: &mut HeaderMap, verdict: Option<&Verdict>) {
    for (name, value) in verdict.map(Verdict::headers).unwrap_or_default() {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    }
}
