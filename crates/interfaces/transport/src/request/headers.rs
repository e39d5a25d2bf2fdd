//! Headers that must not be repeated.

use axum::http::{HeaderMap, HeaderName};

/// The value of a header that is present exactly once and is text.
pub fn single_header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        (None | Some(_), _) => None,
    }
}
