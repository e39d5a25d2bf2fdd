//! Spend limits for the whole project, in the user's file.

use std::num::NonZeroU64;

use crate::nano_usd;
use antiphon_core::SpendLimits;
use serde::Deserialize;

use crate::error::ProjectError;

/// Spend limits per UTC day and month, in US dollars. An absent one does not limit.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct BudgetConfig {
    daily_usd: Option<f64>,
    monthly_usd: Option<f64>,
}

impl BudgetConfig {
    pub(super) fn limits(self) -> Result<SpendLimits, ProjectError> {
        Ok(SpendLimits {
            daily_nano_usd_max: spend_limit("[budget] daily_usd", self.daily_usd)?,
            monthly_nano_usd_max: spend_limit("[budget] monthly_usd", self.monthly_usd)?,
        })
    }
}

/// Converts US dollars to a limit in nano-dollars. `name` is the setting or flag that errors quote.
pub fn spend_limit(name: &str, usd: Option<f64>) -> Result<Option<NonZeroU64>, ProjectError> {
    let bad = || {
        ProjectError::InvalidInput(format!("{name}: an amount from 0.000000001 to 1000000 dollars"))
    };
    usd.map(|usd| nano_usd(usd).and_then(NonZeroU64::new).ok_or_else(bad)).transpose()
}
