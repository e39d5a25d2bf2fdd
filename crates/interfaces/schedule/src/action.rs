//! Decides the next action of a schedule. Pure.

use std::time::Duration;

use antiphon_project::schedules::When;
use chrono::{DateTime, Utc};

/// Default of [`MissedPolicy::age_max`]: a day.
pub const MISSED_AGE_DEFAULT: Duration = Duration::from_secs(24 * 60 * 60);

/// Which missed ticks are delivered. Of several, only the last is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissedPolicy {
    /// An older tick is skipped. An `at` is never too old.
    pub age_max: Duration,
}

impl Default for MissedPolicy {
    fn default() -> Self {
        Self { age_max: MISSED_AGE_DEFAULT }
    }
}

/// The next action of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Deliver this tick: it is due.
    Deliver(DateTime<Utc>),
    /// Skip this tick: it was due too long ago.
    Skip(DateTime<Utc>),
    /// Wait for this tick.
    Wait(DateTime<Utc>),
    /// No tick is left.
    End,
}

/// The action at `now`, when all ticks up to `after` are done.
///
/// A start, a machine that wakes up and a pause between two attempts are treated alike: the last
/// tick that is due and not done is the one to deliver.
pub(crate) fn decide(
    when: &When,
    after: DateTime<Utc>,
    now: DateTime<Utc>,
    missed: MissedPolicy,
) -> Action {
    match when.last_due(now).filter(|at| *at > after) {
        Some(at) if is_too_old(when, at, now, missed) => Action::Skip(at),
        Some(at) => Action::Deliver(at),
        None => when.next_after(now).map_or(Action::End, Action::Wait),
    }
}

fn is_too_old(when: &When, at: DateTime<Utc>, now: DateTime<Utc>, missed: MissedPolicy) -> bool {
    match when {
        When::Every(_) | When::Cron(_) => {
            now.signed_duration_since(at).to_std().is_ok_and(|age| age > missed.age_max)
        }
        When::At(_) => false,
    }
}
