//! Ticks with a fixed period. Their times depend on the period alone, so a restart does not shift
//! them. A period outside of the bounds is refused.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};

use super::when_error::{WhenError, bounded};

/// Shortest period.
pub const EVERY_MIN: Duration = Duration::from_secs(1);

/// Longest period: 366 days.
pub const EVERY_MAX: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// Ticks at `from`, and at every multiple of a period after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Every {
    period_s: i64,
    from: DateTime<Utc>,
}

impl Every {
    /// Ticks at multiples of `period` since 1970-01-01T00:00:00Z: an hourly period ticks on the
    /// hour, a daily one at midnight, a weekly one on Thursdays.
    pub fn new(period: Duration) -> Result<Self, WhenError> {
        let bounds = || WhenError::Bounds { found: humantime::format_duration(period).to_string() };
        if !(EVERY_MIN..=EVERY_MAX).contains(&period) || period.subsec_nanos() != 0 {
            return Err(bounds());
        }
        let period_s = i64::try_from(period.as_secs()).map_err(|_| bounds())?;
        Ok(Self { period_s, from: DateTime::UNIX_EPOCH })
    }

    /// Parses a period such as `90s`, `5m` or `1h 30m`.
    pub fn parse(text: &str) -> Result<Self, WhenError> {
        let text = bounded("every", text)?;
        let refuse = |reason: String| WhenError::Period { found: text.to_owned(), reason };
        // The parser takes months and years as averages, and `M` looks like minutes.
        let mut units = text.split(|c: char| !c.is_alphabetic());
        if units.any(|unit| unit.starts_with(['M', 'y']) || unit.starts_with("month")) {
            return Err(refuse("months and years differ in length, `cron` knows them".to_owned()));
        }
        Self::new(humantime::parse_duration(text).map_err(|error| refuse(error.to_string()))?)
    }

    /// The same period with its first tick at `from`.
    pub fn from(self, from: DateTime<Utc>) -> Self {
        Self { from, ..self }
    }

    /// Time between two ticks.
    pub fn period(&self) -> Duration {
        Duration::from_secs(self.period_s.unsigned_abs())
    }

    /// The first tick after `t`.
    pub(super) fn next_after(&self, t: DateTime<Utc>) -> Option<DateTime<Utc>> {
        match self.last_due(t) {
            Some(last) => last.checked_add_signed(TimeDelta::try_seconds(self.period_s)?),
            None => Some(self.from),
        }
    }

    /// The last tick at or before `now`.
    pub(super) fn last_due(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
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
