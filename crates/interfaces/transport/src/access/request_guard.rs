//! The guard around every request: checks it, limits its time, catches panics and adds security headers.

use std::borrow::Cow;
use std::net::Ipv4Addr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use antiphon_core::ErrorCode;
use antiphon_core::port::{Clock, SystemClock};
use antiphon_keys::{Peer, RateDecision};
use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, HOST,
    ORIGIN, REFERRER_POLICY, TRANSFER_ENCODING, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;

use crate::access::caller::{Caller, KeyCheck, unauthorized};
use crate::access::key_watch::ConnectionKey;
use crate::access::open_requests::OpenRequest;
use crate::access::own_work;
use crate::api_error::{ApiError, NativeError};
use crate::connection::listeners::ListenerKind;
use crate::interface::ErrorShape;
use crate::request::headers::single_header;
use crate::request::json::too_large;
use crate::request::{head, request_id};
use crate::state::AppState;

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Headers of every response that does not set them itself.
const DEFAULT_HEADERS: [(HeaderName, &str); 5] = [
    (CACHE_CONTROL, "no-store"),
    (CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    (REFERRER_POLICY, "no-referrer"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
];

/// A request that passed the checks of host, origin and credentials.
struct Checked {
    /// Absent on open and signed routes.
    caller: Option<Caller>,
    /// The check of the caller's API key.
    key: Option<KeyCheck>,
}

/// Passes a request on to its handler, or refuses it.
pub(crate) async fn guard(
    State(state): State<Arc<AppState>>,
    mut request: Request,
    next: Next,
) -> Response {
    // A chunked request may hide another one after it when its length is given too (request smuggling):
    // it is the last of its connection.
    let is_last = request.headers().contains_key(TRANSFER_ENCODING);
    let connection = request.extensions().get::<ConnectionKey>().cloned();
    if let Some(connection) = &connection {
        connection.set(None);
    }
    let shape = state.access.error_shape(request.uri().path(), request.headers());
    let mut response =
        match check(&state, &request) {
            Ok(Checked { caller, key }) => {
                let verdict = key.as_ref().map(|key| key.verdict);
                let mut response =
                    match check_allowed(&state, caller.as_ref(), verdict.as_ref(), &mut request)
                        .await
                    {
                        Ok(open) => {
                            let answering = answer(&state, caller, request, next);
                            while_allowed(answering, key, open, connection.as_ref()).await
                        }
                        Err(refused) => refused.into_response(),
                    };
                set_rate_limit_headers(response.headers_mut(), verdict.as_ref());
                response
            }
            Err(refused) => refused.into_response(),
        };
    if let Some(shape) = shape {
        response = reshaped(response, shape);
        if let Some(name) = shape.request_id {
            request_id::set(response.headers_mut(), name);
        }
    }
    if is_last {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    for (name, value) in DEFAULT_HEADERS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// An error in the shape of its interface. Any other response is unchanged.
fn reshaped(mut response: Response, shape: ErrorShape) -> Response {
    let Some(NativeError(native)) = response.extensions_mut().remove() else { return response };
    let body = (shape.body)(response.status(), &native);
    let (mut parts, _) = response.into_parts();
    parts.headers.remove(CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(body.to_string()))
}

/// Answers a request as long as the key of its caller allows it. The connection watches the key while it sends
/// the response.
async fn while_allowed(
    answering: impl Future<Output = Response>,
    key: Option<KeyCheck>,
    open: Option<OpenRequest>,
    connection: Option<&ConnectionKey>,
) -> Response {
    let Some(KeyCheck { watch, .. }) = key else { return answering.await };
    let response = tokio::select! {
        response = answering => response,
        () = watch.lost() => return unauthorized().into_response(),
    };
    if let Some(connection) = connection {
        connection.set(Some(watch));
    }
    match open {
        Some(open) => open.until_sent(response),
        None => response,
    }
}

async fn answer(
    state: &AppState,
    caller: Option<Caller>,
    mut request: Request,
    next: Next,
) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    if let Some(caller) = caller {
        request.extensions_mut().insert(caller);
    }
    let answering = AssertUnwindSafe(next.run(request)).catch_unwind();
    match tokio::time::timeout(state.deps.limits.answer_wait, answering).await {
        Ok(Ok(response)) => response,
        Ok(Err(_)) => {
            tracing::error!(http.method = %method, http.path = path, "a request panicked");
            let message = "internal error: see the server's log";
            ApiError::new(ErrorCode::InternalError, message).into_response()
        }
        Err(_) => {
            let message =
                "the response took too long: what was accepted continues; ask again later";
            ApiError::new(ErrorCode::ServiceUnavailable, message).into_response()
        }
    }
}

/// Checks the size of the head, host, origin and credentials.
fn check(state: &Arc<AppState>, request: &Request) -> Result<Checked, ApiError> {
    head::check(request)?;
    let headers = request.headers();
    let refuse = |message| ApiError::new(ErrorCode::Forbidden, message);
    let peer = request.extensions().get::<Peer>().copied();
    let peer = peer.unwrap_or(Peer::Address(Ipv4Addr::UNSPECIFIED.into()));
    let has_host = |host: &str| state.hosts.has_host(host, ListenerKind::of(peer));
    // A target in absolute form names the host once more, and takes precedence over `Host`.
    let target = request.uri().authority().map(Authority::as_str);
    if !single_header(headers, &HOST).is_some_and(has_host) || !target.is_none_or(has_host) {
        return Err(refuse("unknown host name: add it with `--allow-host`"));
    }
    if headers.contains_key(ORIGIN)
        && !single_header(headers, &ORIGIN).is_some_and(|origin| state.hosts.has_origin(origin))
    {
        return Err(refuse("requests from pages of other origins are refused"));
    }
    let without_credentials = Checked { caller: None, key: None };
    if state.access.is_open(request.uri().path(), route(request)) {
        return Ok(without_credentials);
    }
    if state.access.is_signed(request.method(), route(request)) {
        if headers.contains_key(ORIGIN) {
            return Err(refuse("requests from pages may not send events"));
        }
        return Ok(without_credentials);
    }
    let credentials = if headers.contains_key(AUTHORIZATION) {
        Cow::Borrowed(single_header(headers, &AUTHORIZATION).unwrap_or_default())
    } else if headers.contains_key(API_KEY) {
        // Anthropic's clients send their key like this.
        Cow::Owned(format!("Bearer {}", single_header(headers, &API_KEY).unwrap_or_default()))
    } else {
        return Err(unauthorized());
    };
    let (caller, key) = Caller::authenticate(state, &credentials, peer, SystemClock.now())?;
    Ok(Checked { caller: Some(caller), key })
}

/// The route that matches the request, if any.
fn route(request: &Request) -> Option<&str> {
    request.extensions().get::<MatchedPath>().map(MatchedPath::as_str)
}

/// Checks the rate limit and the level of the key, the announced length of the body, and how many requests of
/// the key are open, and whether a key that sees its own work alone asks for that. Counts the request of a key.
async fn check_allowed(
    state: &AppState,
    caller: Option<&Caller>,
    verdict: Option<&RateDecision>,
    request: &mut Request,
) -> Result<Option<OpenRequest>, ApiError> {
    if let Some(verdict) = verdict.filter(|verdict| !verdict.is_allowed()) {
        return Err(ApiError::rate_limited(verdict));
    }
    if let Some(caller) = caller {
        let agent_writable = state.access.is_agent_writable(route(request));
        let level = state.access.level(request.method(), route(request));
        caller.check_allowed(request.method(), level, agent_writable)?;
    }
    let length = single_header(request.headers(), &CONTENT_LENGTH);
    let length = length.and_then(|length| length.parse::<u64>().ok());
    let bytes_max = state.deps.limits.body_bytes_max;
    if length.is_some_and(|length| length > bytes_max as u64) {
        return Err(too_large(bytes_max));
    }
    let open = match caller {
        Some(Caller::Key(grant)) => Some(state.open_requests.open(grant.id)?),
        Some(Caller::Owner) | None => None,
    };
    let matched = request.extensions().get::<MatchedPath>().cloned();
    own_work::check(state, caller, matched.as_ref().map(MatchedPath::as_str), request).await?;
    Ok(open)
}

/// Adds the `X-RateLimit-…` headers of a verdict to a response.
pub fn set_rate_limit_headers(headers: &mut HeaderMap, verdict: Option<&RateDecision>) {
    for (name, value) in verdict.map(RateDecision::headers).unwrap_or_default() {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    }
}
