//! Spend limits per day and month of UTC. Pure: the caller passes the amount spent, and gets an error
//! with the time of the next window. A limit that is exactly used up refuses the next spend.
//!
//! | file           | subject                                   |
//! |----------------|-------------------------------------------|
//! | `price`        | prices of models and costs of answers     |
//! | `spend_window` | when a daily or monthly limit begins anew |
//! | `spending`     | spending by day, folded from events       |
//! | `status`       | what is spent, and what the limits are    |

pub(crate) mod price;
pub(crate) mod spend_window;
pub(crate) mod spending;
pub(crate) mod status;

use std::num::NonZeroU64;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::Cost;
use crate::budget::spend_window::SpendWindow;

/// Spend limits, in billionths of a US dollar. An absent limit does not limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpendLimits {
    /// Limit per day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daily_nano_usd_max: Option<NonZeroU64>,
    /// Limit per month.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monthly_nano_usd_max: Option<NonZeroU64>,
}

/// An amount per window: spent since the window began, or added to its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PerWindow {
    /// Amount of the current [`SpendWindow::Day`].
    pub today: Cost,
    /// Amount of the current [`SpendWindow::Month`].
    pub this_month: Cost,
}

/// A spend limit is used up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{spent} of {limit} for this {} are spent; try again from {resets_at} on", .window.as_str())]
pub struct SpendExceeded {
    /// Window of the limit.
    pub window: SpendWindow,
    /// The limit.
    pub limit: Cost,
    /// Amount spent in the window.
    pub spent: Cost,
    /// Time when the next window begins.
    pub resets_at: DateTime<Utc>,
}

impl SpendLimits {
    /// Whether there is no limit.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The same limits, each raised by `more`. An absent limit stays absent.
    pub fn raised(&self, by: PerWindow) -> Self {
        let add = |limit: Option<NonZeroU64>, by: Cost| {
            limit.map(|limit| limit.saturating_add(by.nano_usd))
        };
        Self {
            daily_nano_usd_max: add(self.daily_nano_usd_max, by.today),
            monthly_nano_usd_max: add(self.monthly_nano_usd_max, by.this_month),
        }
    }

    /// The limit of a window.
    pub fn of(&self, window: SpendWindow) -> Option<Cost> {
        let limit = match window {
            SpendWindow::Day => self.daily_nano_usd_max,
            SpendWindow::Month => self.monthly_nano_usd_max,
        };
        limit.map(|limit| Cost { nano_usd: limit.get() })
    }

    /// Whether more may be spent. When both limits are used up, the error names the longer window.
    pub fn check(&self, spent: PerWindow, now: DateTime<Utc>) -> Result<(), SpendExceeded> {
        for window in [SpendWindow::Month, SpendWindow::Day] {
            let (Some(limit), spent) = (self.of(window), spent.of(window)) else { continue };
            if spent >= limit {
                return Err(SpendExceeded { window, limit, spent, resets_at: window.ends(now) });
            }
        }
        Ok(())
    }
}

impl PerWindow {
    /// The amount of a window.
    pub fn of(&self, window: SpendWindow) -> Cost {
        match window {
            SpendWindow::Day => self.today,
            SpendWindow::Month => self.this_month,
        }
    }
}
