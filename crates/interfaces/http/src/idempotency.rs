//! The client's own name for a request, `Idempotency-Key`: the same name from the same caller is the
//! same request, done once. The names of different callers, and of different kinds of requests, never
//! meet. One that is no name is refused with 400, before anything is done.

use antiphon_core::port::IdempotencyKey;
use axum::http::HeaderMap;

use crate::api_error::ApiError;
use crate::caller::Caller;

/// Longest `Idempotency-Key`, in bytes.
pub const KEY_BYTES_MAX: usize = 256;

/// The name of a request among those of `kind`. Nobody who has a key can name what another one has
/// named, nor what whoever has the token has.
pub(crate) fn key(
    caller: &Caller,
    kind: &str,
    headers: &HeaderMap,
) -> Result<Option<IdempotencyKey>, ApiError> {
    Ok(own_key(headers)?.map(|key| named(caller, kind, &key)))
}

/// The name `key` among those of `kind`.
pub(crate) fn named(caller: &Caller, kind: &str, key: &str) -> IdempotencyKey {
    IdempotencyKey(match caller {
        Caller::Owner => format!("{kind}:{key}"),
        Caller::Key(allowed) => format!("{kind}@{}:{key}", allowed.id),
    })
}

/// The name as the client wrote it.
pub(crate) fn own_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(key) = headers.get("idempotency-key") else { return Ok(None) };
    let key = key.to_str().unwrap_or_default().trim();
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        return Err(ApiError::invalid(format!(
            "`Idempotency-Key` has 1 to {KEY_BYTES_MAX} characters of ASCII"
        )));
    }
    Ok(Some(key.to_owned()))
}
