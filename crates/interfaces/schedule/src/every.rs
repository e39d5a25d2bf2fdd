//! Ticks at a fixed distance. Where they lie follows from the period alone, so that a restart does not
//! move them. A period out of bounds is refused.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};

use crate::when_error::{WhenError, bounded};

/// Shortest period.
pub const EVERY_MIN: Duration = Duration::from_secs(1);

/// Longest period: 366 days.
pub const EVERY_MAX: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// Ticks at `from`, and at every multiple of a period behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Every {
    period_s: i64,
    from: DateTime<Utc>,
}

impl Every {
    /// Ticks at multiples of `period` since the beginning of 1970, UTC: those of an hour are on the
    /// hour, those of a day at midnight, those of seven days on Thursdays.
    pub fn new(period: Duration) -> Result<Self, WhenError> {
        let bounds = || WhenError::Bounds { found: humantime::format_duration(period).to_string() };
        if !(EVERY_MIN..=EVERY_MAX).contains(&period) || period.subsec_nanos() != 0 {
            return Err(bounds());
        }
        let period_s = i64::try_from(period.as_secs()).map_err(|_| bounds())?;
        Ok(Self { period_s, from: DateTime::UNIX_EPOCH })
    }

    /// Reads a period such as `90s`, `5m` or `1h 30m`.
    pub fn parse(text: &str) -> Result<Self, WhenError> {
        let text = bounded("every", text)?;
        let refuse = |reason: String| WhenError::Period { found: text.to_owned(), reason };
        // They are averages to the parser, and `M` looks like minutes.
        let mut units = text.split(|c: char| !c.is_alphabetic());
        if units.any(|unit| unit.starts_with(['M', 'y']) || unit.starts_with("month")) {
            return Err(refuse("months and years differ in length, `cron` knows them".to_owned()));
        }
        Self::new(humantime::parse_duration(text).map_err(|error| refuse(error.to_string()))?)
    }

    /// The same period, with the first tick at `from`.
    pub fn from(self, from: DateTime<Utc>) -> Self {
        Self { from, ..self }
    }

    /// From one tick to the next.
    pub fn period(&self) -> Duration {
        Duration::from_secs(self.period_s.unsigned_abs())
    }

    /// The first tick behind `t`.
    pub(crate) fn next_after(&self, t: DateTime<Utc>) -> Option<DateTime<Utc>> {
        match self.last_due(t) {
            Some(last) => last.checked_add_signed(TimeDelta::try_seconds(self.period_s)?),
            None => Some(self.from),
        }
    }

    /// The last tick that is not behind `now`.
    pub(crate) fn last_due(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        if now < self.from {
            return None;
        }
        let passed_s = now.signed_duration_since(self.from).num_seconds();
        let whole_s = passed_s - passed_s % self.period_s;
        self.from.checked_add_signed(TimeDelta::try_seconds(whole_s)?)
    }
}

impl fmt::Display for Every {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "every {}", humantime::format_duration(self.period()))?;
        if self.from == DateTime::UNIX_EPOCH {
            return Ok(());
        }
        write!(f, " from {}", self.from.to_rfc3339_opts(SecondsFormat::AutoSi, true))
    }
}
