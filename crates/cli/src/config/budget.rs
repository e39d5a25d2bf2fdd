//! What may be spent in all, as the user says.

use antiphon_core::SpendLimits;
use antiphon_project::nano_usd;
use serde::Deserialize;
use std::num::NonZeroU64;

use crate::failure::Failure;

/// What may be spent in a day and in a month of UTC, in US dollars. What is absent does not limit.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct BudgetConfig {
    daily_usd: Option<f64>,
    monthly_usd: Option<f64>,
}

impl BudgetConfig {
    /// The limits, if they are amounts.
    pub(crate) fn limits(self) -> Result<SpendLimits, Failure> {
        Ok(SpendLimits {
            daily_nano_usd_max: limit("[budget] daily_usd", self.daily_usd)?,
            monthly_nano_usd_max: limit("[budget] monthly_usd", self.monthly_usd)?,
        })
    }
}

/// A limit in the smallest unit there is.
pub(crate) fn limit(name: &str, usd: Option<f64>) -> Result<Option<NonZeroU64>, Failure> {
    let bad = || Failure::usage(format!("{name}: an amount from 0.000000001 to 1000000 dollars"));
    usd.map(|usd| nano_usd(usd).and_then(NonZeroU64::new).ok_or_else(bad)).transpose()
}
