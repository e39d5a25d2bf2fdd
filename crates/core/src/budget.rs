//! What may be spent in a day and in a month, of UTC. Pure: who counts hands in what was spent, and
//! gets a refusal that says until when. What is spent exactly is spent: the next is refused.

use std::num::NonZeroU64;

use chrono::{DateTime, Datelike, Days, Months, NaiveDate, NaiveTime, Utc};
use serde::{Deserialize, Serialize};

use crate::Cost;

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SpendWindow {
    /// From midnight to midnight.
    Day,
    /// From the first to the first.
    Month,
}

/// An amount of each window: what was spent since it began, or what was added to its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PerWindow {
    /// Since [`SpendWindow::Day`] began.
    pub today: Cost,
    /// Since [`SpendWindow::Month`] began.
    pub this_month: Cost,
}

/// No more may be spent for now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
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
    /// Whether nothing is limited.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The same limits with so much more in each. One that is absent stays so.
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

    /// Whether more may be spent. If both limits are reached, the one that lasts longer is told.
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
    /// That of a window.
    pub fn of(&self, window: SpendWindow) -> Cost {
        match window {
            SpendWindow::Day => self.today,
            SpendWindow::Month => self.this_month,
        }
    }
}

impl SpendWindow {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Day, Self::Month];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Month => "month",
        }
    }

    /// When the window that `now` is in began: count from here.
    pub fn began(self, now: DateTime<Utc>) -> DateTime<Utc> {
        self.first_day(now).and_time(NaiveTime::MIN).and_utc()
    }

    /// The first day of the window that `now` is in.
    pub fn first_day(self, now: DateTime<Utc>) -> NaiveDate {
        let today = now.date_naive();
        match self {
            Self::Day => today,
            Self::Month => today.with_day(1).unwrap_or(today),
        }
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
