//! Counts the requests of each key. A request over the limit is refused and costs nothing. The number
//! of buckets is bounded: with too many keys, the one unused for longest is forgotten first.
//!
//! A token bucket for each key, rather than the crate `governor`: keys have their own limits, which
//! change; the time is an argument and may go back; and clients learn when their bucket is full again.

use std::sync::{Mutex, PoisonError};

use chrono::{DateTime, Utc};

use super::buckets::Buckets;
use super::rate_limit::RateLimit;
use super::verdict::RateDecision;
use crate::key::KeyId;

/// Counts the requests of each key.
#[derive(Debug)]
pub struct Limiter {
    default: RateLimit,
    buckets: Mutex<Buckets<KeyId>>,
}

impl Limiter {
    /// `default` applies to keys without a limit of their own.
    pub fn new(default: RateLimit) -> Self {
        Self { default, buckets: Mutex::new(Buckets::new()) }
    }

    /// Counts a request with this key, unless it is over the limit. `own` is the key's own limit.
    pub fn check(&self, id: KeyId, own: Option<RateLimit>, now: DateTime<Utc>) -> RateDecision {
        let limit = own.unwrap_or(self.default);
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner).take(id, limit, now)
    }

    /// Number of keys with a bucket, at most [`BUCKETS_MAX`](crate::BUCKETS_MAX).
    pub fn bucket_count(&self) -> usize {
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}
