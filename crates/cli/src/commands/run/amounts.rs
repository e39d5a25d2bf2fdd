//! Numbers in arguments, with errors in words of the user.

use std::num::NonZeroU32;

/// A number of at least 1.
pub(super) fn at_least_one(text: &str) -> Result<NonZeroU32, String> {
    text.parse().map_err(|_| format!("must be a whole number from 1 to {}", NonZeroU32::MAX))
}

/// An amount of US dollars.
pub(super) fn dollars(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "must be an amount of US dollars, such as 0.50".to_owned())
}
