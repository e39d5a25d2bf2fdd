//! The token bucket of one key, in integers, so that rounding loses nothing. A clock that goes back
//! adds nothing and removes nothing.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::rate_limit::RateLimit;
use super::verdict::RateDecision;

/// Cost of one request. Each nanosecond adds the number of requests per minute, so the cost is the
/// number of nanoseconds in a minute.
const REQUEST: u64 = 60_000_000_000;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Bucket {
    limit: RateLimit,
    level: u64,
    at: DateTime<Utc>,
}

impl Bucket {
    /// A full bucket.
    pub(crate) fn new(limit: RateLimit, now: DateTime<Utc>) -> Self {
        Self { limit, level: capacity(limit), at: now }
    }

    /// Takes one request if the bucket holds enough.
    pub(crate) fn take(&mut self, limit: RateLimit, now: DateTime<Utc>) -> RateDecision {
        self.level = self.level_at(now).min(capacity(limit));
        (self.limit, self.at) = (limit, now);
        let retry_after = match self.level.checked_sub(REQUEST) {
            Some(rest) => {
                self.level = rest;
                None
            }
            None => Some(Duration::from_nanos(self.ns_to(REQUEST))),
        };
        RateDecision {
            limit: limit.requests(),
            remaining: u32::try_from(self.level / REQUEST).unwrap_or(u32::MAX),
            reset_at: later(now, self.ns_to(capacity(limit))),
            retry_after,
        }
    }

    /// Whether it equals a new bucket.
    pub(crate) fn is_full(&self, now: DateTime<Utc>) -> bool {
        self.level_at(now) >= capacity(self.limit)
    }

    pub(crate) fn used_at(&self) -> DateTime<Utc> {
        self.at
    }

    fn level_at(&self, now: DateTime<Utc>) -> u64 {
        let passed = (now - self.at).max(TimeDelta::zero()).min(TimeDelta::minutes(1));
        let ns = passed.num_nanoseconds().and_then(|ns| u64::try_from(ns).ok()).unwrap_or(REQUEST);
        // At most a minute is counted, so the product cannot overflow.
        let filled = ns.saturating_mul(self.limit.requests().into());
        self.level.saturating_add(filled).min(capacity(self.limit))
    }

    /// Nanoseconds until the bucket holds `level`.
    fn ns_to(&self, level: u64) -> u64 {
        level.saturating_sub(self.level).div_ceil(self.limit.requests().into())
    }
}

fn capacity(limit: RateLimit) -> u64 {
    u64::from(limit.requests()).saturating_mul(REQUEST)
}

fn later(now: DateTime<Utc>, ns: u64) -> DateTime<Utc> {
    let wait = TimeDelta::nanoseconds(i64::try_from(ns).unwrap_or(i64::MAX));
    now.checked_add_signed(wait).unwrap_or(DateTime::<Utc>::MAX_UTC)
}
