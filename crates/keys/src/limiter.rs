//! How often each key is used. A request over the limit is refused and costs nothing; what is held is
//! bounded, and when there are too many keys the one that rested longest is forgotten first.
//!
//! A token bucket for each key, rather than the crate `governor`: keys have limits of their own, which
//! change; the time is handed in and may go back; and clients are told when their limit is whole again.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use chrono::{DateTime, Utc};

use crate::bucket::Bucket;
use crate::key_id::KeyId;
use crate::rate_limit::RateLimit;
use crate::ring::KEYS_MAX;
use crate::verdict::Verdict;

/// Most keys whose use is remembered: as many as a ring has.
pub const BUCKETS_MAX: usize = KEYS_MAX;

/// How often each key is used.
#[derive(Debug)]
pub struct Limiter {
    default: RateLimit,
    buckets: Mutex<HashMap<KeyId, Bucket>>,
}

impl Limiter {
    /// A limiter; `default` is for keys that have no limit of their own.
    pub fn new(default: RateLimit) -> Self {
        Self { default, buckets: Mutex::new(HashMap::new()) }
    }

    /// Counts a request that was made with a key, if it may be made.
    pub fn check(&self, id: KeyId, own: Option<RateLimit>, now: DateTime<Utc>) -> Verdict {
        let limit = own.unwrap_or(self.default);
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= BUCKETS_MAX && !buckets.contains_key(&id) {
            make_room(&mut buckets, now);
        }
        buckets.entry(id).or_insert_with(|| Bucket::new(limit, now)).take(limit, now)
    }

    /// How many keys are remembered.
    pub fn remembered(&self) -> usize {
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

fn make_room(buckets: &mut HashMap<KeyId, Bucket>, now: DateTime<Utc>) {
    // A full one says nothing that a new one would not.
    buckets.retain(|_, bucket| !bucket.is_full(now));
    if buckets.len() >= BUCKETS_MAX {
        let longest = buckets.iter().min_by_key(|(id, bucket)| (bucket.used_at(), **id));
        if let Some(id) = longest.map(|(id, _)| *id) {
            buckets.remove(&id);
        }
    }
}
