//! Numbers in arguments, with errors in words of the user.

use std::num::{NonZeroU32, NonZeroU64};

use crate::failure::Failure;

/// A number of at least 1.
pub(crate) fn at_least_one(text: &str) -> Result<NonZeroU32, String> {
    text.parse().map_err(|_| format!("must be a whole number from 1 to {}", NonZeroU32::MAX))
}

/// An amount of US dollars.
pub(crate) fn dollars(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "must be an amount of US dollars, such as 0.50".to_owned())
}

/// The budget of a task, in billionths of a US dollar.
pub(crate) fn nano_usd(usd: f64) -> Result<NonZeroU64, Failure> {
    let budget = antiphon_project::nano_usd(usd).and_then(NonZeroU64::new);
    budget.ok_or_else(|| Failure::usage("--budget-usd takes an amount from 0.000000001 to 1000000"))
}
