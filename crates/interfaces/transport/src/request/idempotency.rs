//! The header `Idempotency-Key`: a repeated key of the same caller is the same request, done once. Keys of
//! different callers and of different kinds of requests never collide. An invalid key is refused with 400,
//! before anything is done. The journal knows the keys and answers repeated ones, in the transaction of an append
//! (`append_transaction.rs` of the store).

use antiphon_core::port::IdempotencyKey;
use axum::http::HeaderMap;

use crate::access::caller::Caller;
use crate::api_error::ApiError;

/// Longest `Idempotency-Key`, in bytes.
pub const KEY_BYTES_MAX: usize = 256;

/// The key of a request of `kind`; `None` without the header.
pub fn key(
    caller: &Caller,
    kind: &str,
    headers: &HeaderMap,
) -> Result<Option<IdempotencyKey>, ApiError> {
    Ok(own_key(headers)?.map(|key| caller.principal().idempotency_key(kind, &key)))
}

/// The key as the client sent it.
pub fn own_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(key) = headers.get("idempotency-key") else { return Ok(None) };
    let key = key.to_str().unwrap_or_default().trim();
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        return Err(ApiError::invalid(format!(
            "`Idempotency-Key` must have 1 to {KEY_BYTES_MAX} ASCII characters"
        )));
    }
    Ok(Some(key.to_owned()))
}
