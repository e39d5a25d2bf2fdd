//! What may be spent in a day and in a month, of UTC. Pure: who counts hands in what was spent, and
//! gets a refusal that says until when. What is spent exactly is spent: the next is refused.

use std::num::NonZeroU64;

use antiphon_core::Cost;
use chrono::{DateTime, Datelike, Days, Months, NaiveTime, Utc};
use serde::{Deserialize, Serialize};

/// What may be spent, in billionths of a US dollar. One that is absent does not limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpendLimits {
    /// In a day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daily_nano_usd_max: Option<NonZeroU64>,
    /// In a month.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monthly_nano_usd_max: Option<NonZeroU64>,
}

/// A stretch of time that spending is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SpendWindow {
    /// From midnight to midnight.
    Day,
    /// From the first to the first.
    Month,
}

/// What was spent since the windows began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    /// Since [`SpendWindow::Day`] began.
    pub today: Cost,
    /// Since [`SpendWindow::Month`] began.
    pub this_month: Cost,
}

/// No more may be spent for now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{spent} of {limit} for this {} are spent; try again from {resets_at} on", .window.as_str())]
pub struct SpendExceeded {
    /// Which limit was reached.
    pub window: SpendWindow,
    /// The limit.
    pub limit: Cost,
    /// What was spent.
    pub spent: Cost,
    /// When the next window begins.
    pub resets_at: DateTime<Utc>,
}

impl SpendLimits {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether more may be spent. If both limits are reached, the one that lasts longer is told.
    pub fn check(&self, spent: Spent, now: DateTime<Utc>) -> Result<(), SpendExceeded> {
        let month = (SpendWindow::Month, self.monthly_nano_usd_max, spent.this_month);
        let day = (SpendWindow::Day, self.daily_nano_usd_max, spent.today);
        for (window, limit, spent) in [month, day] {
            let Some(limit) = limit else { continue };
            let limit = Cost { nano_usd: limit.get() };
            if spent >= limit {
                return Err(SpendExceeded { window, limit, spent, resets_at: window.ends(now) });
            }
        }
        Ok(())
    }
}

impl SpendWindow {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Month => "month",
        }
    }

    /// When the window that `now` is in began: count from here.
    pub fn began(self, now: DateTime<Utc>) -> DateTime<Utc> {
        let today = now.date_naive();
        let first = match self {
            Self::Day => today,
            Self::Month => today.with_day(1).unwrap_or(today),
        };
        first.and_time(NaiveTime::MIN).and_utc()
    }

    /// When the next window begins.
    pub fn ends(self, now: DateTime<Utc>) -> DateTime<Utc> {
        let began = self.began(now);
        let next = match self {
            Self::Day => began.checked_add_days(Days::new(1)),
            Self::Month => began.checked_add_months(Months::new(1)),
        };
        next.unwrap_or(DateTime::<Utc>::MAX_UTC)
    }
}
