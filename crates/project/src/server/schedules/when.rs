//! When a schedule ticks. Pure: the same arguments give the same result on every machine and after
//! every restart.

use std::fmt;

use chrono::{DateTime, SecondsFormat, Utc};

use super::cron::Cron;
use super::every::Every;

/// When a schedule ticks. Its text, such as `every 5m`, is complete: equal texts have equal ticks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum When {
    /// With a fixed period.
    Every(Every),
    /// At calendar times.
    Cron(Cron),
    /// Once.
    At(DateTime<Utc>),
}

impl When {
    /// The first tick after `t`; `None` when there is none.
    pub fn next_after(&self, t: DateTime<Utc>) -> Option<DateTime<Utc>> {
        match self {
            Self::Every(every) => every.next_after(t),
            Self::Cron(cron) => cron.next_after(t),
            Self::At(at) => Some(*at).filter(|at| *at > t),
        }
    }

    /// The last tick at or before `now`; `None` when there is none.
    pub fn last_due(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        match self {
            Self::Every(every) => every.last_due(now),
            Self::Cron(cron) => cron.last_due(now),
            Self::At(at) => Some(*at).filter(|at| *at <= now),
        }
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Every(every) => every.fmt(f),
            Self::Cron(cron) => cron.fmt(f),
            Self::At(at) => write!(f, "at {}", at.to_rfc3339_opts(SecondsFormat::AutoSi, true)),
        }
    }
}
