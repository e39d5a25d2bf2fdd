//! What a schedule does next. Pure.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::when::When;

/// How old a missed tick may be, unless told otherwise: a day.
pub const MISSED_AGE_DEFAULT: Duration = Duration::from_secs(24 * 60 * 60);

/// What becomes of ticks that nobody was there for. Of several, the last alone counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missed {
    /// An older one is left out. An `at` is never too old.
    pub age_max: Duration,
}

impl Default for Missed {
    fn default() -> Self {
        Self { age_max: MISSED_AGE_DEFAULT }
    }
}

/// What a schedule does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// This tick is due.
    Deliver(DateTime<Utc>),
    /// This tick was due too long ago.
    Leave(DateTime<Utc>),
    /// This is the next tick.
    Wait(DateTime<Utc>),
    /// There is none any more.
    End,
}

/// What is to be done `now`, when everything up to `after` is over.
///
/// A start, a machine that wakes up and a pause between two attempts are all the same here: the last
/// tick that is due and not over is the one that counts.
pub(crate) fn decide(
    when: &When,
    after: DateTime<Utc>,
    now: DateTime<Utc>,
    missed: Missed,
) -> Step {
    match when.last_due(now).filter(|at| *at > after) {
        Some(at) if is_too_old(when, at, now, missed) => Step::Leave(at),
        Some(at) => Step::Deliver(at),
        None => when.next_after(now).map_or(Step::End, Step::Wait),
    }
}

fn is_too_old(when: &When, at: DateTime<Utc>, now: DateTime<Utc>, missed: Missed) -> bool {
    match when {
        When::Every(_) | When::Cron(_) => {
            now.signed_duration_since(at).to_std().is_ok_and(|age| age > missed.age_max)
        }
        When::At(_) => false,
    }
}
