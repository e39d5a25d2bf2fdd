//! Counts the requests of each key. A request over the limit is refused and costs nothing. The number
//! of buckets is bounded: with too many keys, the one unused for longest is forgotten first.
//!
//! A token bucket for each key, rather than the crate `governor`: keys have their own limits, which
//! change; the time is an argument and may go back; and clients learn when their bucket is full again.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use chrono::{DateTime, Utc};

use super::bucket::Bucket;
use super::rate_limit::RateLimit;
use super::verdict::Verdict;
use crate::key::KeyId;
use crate::ring::KEYS_MAX;

/// Most keys that are counted: as many as a ring holds.
pub const BUCKETS_MAX: usize = KEYS_MAX;

/// Counts the requests of each key.
#[derive(Debug)]
pub struct Limiter {
    default: RateLimit,
    buckets: Mutex<HashMap<KeyId, Bucket>>,
}

impl Limiter {
    /// `default` applies to keys without a limit of their own.
    pub fn new(default: RateLimit) -> Self {
        Self { default, buckets: Mutex::new(HashMap::new()) }
    }

    /// Counts a request with this key, unless it is over the limit. `own` is the key's own limit.
    pub fn check(&self, id: KeyId, own: Option<RateLimit>, now: DateTime<Utc>) -> Verdict {
        let limit = own.unwrap_or(self.default);
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= BUCKETS_MAX && !buckets.contains_key(&id) {
            make_room(&mut buckets, now);
        }
        buckets.entry(id).or_insert_with(|| Bucket::new(limit, now)).take(limit, now)
    }

    /// Number of keys with a bucket, at most [`BUCKETS_MAX`].
    pub fn bucket_count(&self) -> usize {
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

fn make_room(buckets: &mut HashMap<KeyId, Bucket>, now: DateTime<Utc>) {
    // A full bucket equals a new one.
    buckets.retain(|_, bucket| !bucket.is_full(now));
    if buckets.len() >= BUCKETS_MAX {
        let oldest = buckets.iter().min_by_key(|(id, bucket)| (bucket.used_at(), **id));
        if let Some(id) = oldest.map(|(id, _)| *id) {
            buckets.remove(&id);
        }
    }
}
