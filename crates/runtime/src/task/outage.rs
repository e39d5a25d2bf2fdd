//! Outages: a task whose model cannot be reached, is overloaded, or breaks off waits and asks again. So does
//! a task whose peer is away.
//!
//! | what happened                                  | the next attempt                                     |
//! |------------------------------------------------|------------------------------------------------------|
//! | an attempt failed                              | after a pause that doubles with each failure, with jitter, or after the longer pause that the provider asks for |
//! | a user resumed the task, or sent it a message  | at once                                              |
//! | the process ended                              | at the same time, or at once when it has passed      |
//!
//! A waiting task has no run slot and no future: it costs one entry among the deadlines. Each failed
//! attempt writes one event. The task's own limits end the wait.

use std::time::Duration;

use antiphon_core::{OutageWait, ProviderError, StatusChanged, StreamError};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::task::schedule::deadline_clock::DeadlineClock;

/// Pause after the first failed attempt. The layers of a provider have retried already.
const PAUSE_MIN: Duration = Duration::from_secs(1);

/// Longest pause of our own.
pub const PAUSE_MAX: Duration = Duration::from_secs(5 * 60);

/// Longest pause that a provider may ask for.
pub const ASKED_PAUSE_MAX: Duration = Duration::from_secs(60 * 60);

/// Spreads the attempts of tasks that the provider sends away at the same moment. Less than half a second, so that a
/// client is told the seconds that the provider asks for: the time until the next attempt, rounded.
const ASKED_SPREAD: Duration = Duration::from_millis(400);

/// What a task knows about the outage of its model or its peer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Outage {
    /// Number of failed attempts since the last complete answer, or since the peer was reached.
    pub attempts: u32,
    /// Time of the next attempt. `None`: at once.
    pub next_at: Option<DateTime<Utc>>,
}

impl Outage {
    /// Applies a new status of the task.
    pub(crate) fn apply(&mut self, change: &StatusChanged) {
        let wait = OutageWait::of(change);
        self.next_at = wait.as_ref().map(|wait| wait.next_at);
        if let Some(wait) = wait {
            self.attempts = wait.attempt;
        }
    }

    /// A user wants the next attempt at once.
    pub(crate) fn retry_at_once(&mut self) {
        self.next_at = None;
    }

    /// Whether the next attempt is one that a user wants at once.
    pub(crate) fn is_hurried(&self) -> bool {
        self.attempts > 0 && self.next_at.is_none()
    }

    /// The model has answered, or the peer has.
    pub(crate) fn end(&mut self) {
        self.attempts = 0;
    }

    /// Whether the next attempt is later. A wall clock that was set back does not put it off.
    pub(crate) fn waits(&self, time: &DeadlineClock) -> bool {
        let Some(next_at) = self.next_at else { return false };
        time.moment_within(next_at, ASKED_PAUSE_MAX + PAUSE_MIN);
        !time.has_passed(next_at)
    }

    /// The wait after one more failure at `now`. `random` spreads the attempts of many tasks.
    pub(crate) fn wait_after(
        &self,
        failure: Failure<'_>,
        now: DateTime<Utc>,
        random: Uuid,
    ) -> OutageWait {
        let attempt = self.attempts.saturating_add(1);
        let pause = pause(attempt, failure.retry_after, random);
        OutageWait {
            code: failure.code.to_owned(),
            error: failure.error,
            attempt,
            next_at: now + TimeDelta::from_std(pause).unwrap_or_default(),
            superseded: failure.shown == AnswerShown::Some,
        }
    }
}

/// A failed attempt.
#[derive(Debug)]
pub(crate) struct Failure<'a> {
    pub(crate) code: &'a str,
    pub(crate) error: String,
    /// Pause that the provider asks for.
    pub(crate) retry_after: Option<Duration>,
    pub(crate) shown: AnswerShown,
}

/// Whether a part of an answer was shown to watchers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerShown {
    Nothing,
    Some,
}

/// The failure of the provider that the same request may survive later, if the answer ended with one.
pub(crate) fn is_outage(error: &StreamError) -> Option<&ProviderError> {
    match error {
        StreamError::Provider(error) if error.is_transient() => Some(error),
        StreamError::Provider(_) | StreamError::Canceled | StreamError::Closed => None,
    }
}

/// The pause before the next attempt: between half of the doubled pause and all of it, or what the provider
/// asks for when that is longer.
fn pause(attempt: u32, asked: Option<Duration>, random: Uuid) -> Duration {
    let doubled = PAUSE_MIN.saturating_mul(1 << attempt.saturating_sub(1).min(16)).min(PAUSE_MAX);
    let jitter = |of: Duration| {
        // The last bits of the id are random.
        let share = u32::try_from(random.as_u128() & 0xFFFF).unwrap_or_default();
        of.saturating_mul(share) / 0xFFFF
    };
    let own = doubled / 2 + jitter(doubled / 2);
    let asked = asked.map(|asked| whole_seconds(asked.min(ASKED_PAUSE_MAX)) + jitter(ASKED_SPREAD));
    own.max(asked.unwrap_or_default())
}

/// Rounded up.
fn whole_seconds(pause: Duration) -> Duration {
    let partial = u64::from(pause.subsec_nanos() > 0);
    Duration::from_secs(pause.as_secs().saturating_add(partial))
}

#[cfg(test)]
mod tests {
    use super::{ASKED_PAUSE_MAX, ASKED_SPREAD, PAUSE_MAX, PAUSE_MIN, pause};
    use std::time::Duration;
    use uuid::Uuid;

    #[test]
    fn pauses_double_up_to_a_few_minutes_and_differ() {
        for (random, low) in [(Uuid::nil(), true), (Uuid::max(), false)] {
            let share = |of: Duration| if low { of / 2 } else { of };
            let pauses: Vec<Duration> = (1..=12).map(|n| pause(n, None, random)).collect();
            assert_eq!(pauses[0], share(PAUSE_MIN));
            assert_eq!(pauses[1], share(PAUSE_MIN * 2));
            assert_eq!(pauses[11], share(PAUSE_MAX));
        }
        assert_eq!(pause(u32::MAX, None, Uuid::max()), PAUSE_MAX);
    }

    #[test]
    fn a_provider_is_given_the_time_it_asks_for_but_not_for_ever() {
        let minute = Duration::from_secs(60);
        assert_eq!(pause(1, Some(minute), Uuid::nil()), minute);
        assert_eq!(pause(1, Some(minute), Uuid::max()), minute + ASKED_SPREAD);
        assert_eq!(pause(1, Some(Duration::from_millis(59_900)), Uuid::nil()), minute);
        assert_eq!(pause(20, Some(minute), Uuid::nil()), PAUSE_MAX / 2);
        assert_eq!(pause(1, Some(Duration::MAX), Uuid::nil()), ASKED_PAUSE_MAX);
    }
}
