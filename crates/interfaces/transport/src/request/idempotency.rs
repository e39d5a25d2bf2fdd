//! The header `Idempotency-Key`: a repeated key of the same caller is the same request, done once. Keys of
//! different callers and of different kinds of requests never collide. An invalid key is refused with 400,
//! before anything is done. The journal knows the keys and answers repeated ones, in the transaction of an append
//! (`append_transaction.rs` of the store).

use antiphon_core::port::IdempotencyKey;
use axum::http::{HeaderMap, HeaderName};

use crate::access::caller::Caller;
use crate::api_error::ApiError;
use crate::request::headers::single_header;

const HEADER: HeaderName = HeaderName::from_static("idempotency-key");

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
    if !headers.contains_key(&HEADER) {
        return Ok(None);
    }
    let key = single_header(headers, &HEADER).unwrap_or_default().trim();
    let is_printable = key.chars().all(|c| (' '..='~').contains(&c));
    if key.is_empty() || key.len() > KEY_BYTES_MAX || !is_printable {
        return Err(ApiError::invalid(format!(
            "`Idempotency-Key` must be there once, with 1 to {KEY_BYTES_MAX} printable ASCII characters"
        )));
    }
    Ok(Some(key.to_owned()))
}
