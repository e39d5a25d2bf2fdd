//! The periods of spend limits: days and months of UTC. A limit begins anew when its window ends.

use chrono::{DateTime, Datelike, Days, Months, NaiveDate, NaiveTime, Utc};
use serde::{Deserialize, Serialize};

/// A period that spending is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SpendWindow {
    /// From midnight to midnight, UTC.
    Day,
    /// From the first of a month to the first of the next, UTC.
    Month,
}

impl SpendWindow {
    /// Every window.
    pub const ALL: [Self; 2] = [Self::Day, Self::Month];

    /// The word in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Month => "month",
        }
    }

    /// Time when the window of `now` began.
    pub fn began(self, now: DateTime<Utc>) -> DateTime<Utc> {
        self.first_day(now).and_time(NaiveTime::MIN).and_utc()
    }

    /// First day of the window of `now`.
    pub fn first_day(self, now: DateTime<Utc>) -> NaiveDate {
        let today = now.date_naive();
        match self {
            Self::Day => today,
            Self::Month => today.with_day(1).unwrap_or(today),
        }
    }

    /// Time when the next window begins.
    pub fn ends(self, now: DateTime<Utc>) -> DateTime<Utc> {
        let began = self.began(now);
        let next = match self {
            Self::Day => began.checked_add_days(Days::new(1)),
            Self::Month => began.checked_add_months(Months::new(1)),
        };
        next.unwrap_or(DateTime::<Utc>::MAX_UTC)
    }
}
