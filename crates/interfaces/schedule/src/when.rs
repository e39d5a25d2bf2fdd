//! When a schedule ticks. Pure: the same question has the same answer, on every machine and after
//! every restart.

use std::fmt;

use chrono::{DateTime, SecondsFormat, Utc};

use crate::cron::Cron;
use crate::every::Every;

/// When a schedule ticks. Its text, such as `every 5m`, says all of it: two that read alike tick alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum When {
    /// At a fixed distance.
    Every(Every),
    /// By the calendar.
    Cron(Cron),
    /// Once.
    At(DateTime<Utc>),
}

impl When {
    /// The first tick behind `t`; `None` when there is none any more.
    pub fn next_after(&self, t: DateTime<Utc>) -> Option<DateTime<Utc>> {
        match self {
            Self::Every(every) => every.next_after(t),
            Self::Cron(cron) => cron.next_after(t),
            Self::At(at) => Some(*at).filter(|at| *at > t),
        }
    }

    /// The last tick that is not behind `now`; `None` when there was none yet.
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
