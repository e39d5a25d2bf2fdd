//! Token buckets by id. Their number is bounded: with too many ids, the one unused for longest is forgotten
//! first.

use std::collections::HashMap;
use std::hash::Hash;

use chrono::{DateTime, Utc};

use super::bucket::Bucket;
use super::rate_limit::RateLimit;
use super::verdict::RateDecision;
use crate::ring::KEYS_MAX;

/// Most ids that are counted: as many as a ring holds keys.
pub const BUCKETS_MAX: usize = KEYS_MAX;

#[derive(Debug)]
pub(crate) struct Buckets<I>(HashMap<I, Bucket>);

impl<I: Copy + Hash + Ord> Buckets<I> {
    pub(crate) fn new() -> Self {
        Self(HashMap::new())
    }

    /// Takes one request from the bucket of `id`.
    pub(crate) fn take(&mut self, id: I, limit: RateLimit, now: DateTime<Utc>) -> RateDecision {
        if self.0.len() >= BUCKETS_MAX && !self.0.contains_key(&id) {
            self.make_room(now);
        }
        self.0.entry(id).or_insert_with(|| Bucket::new(limit, now)).take(limit, now)
    }

    /// The refusal of a request of `id`, if its bucket is empty.
    pub(crate) fn over(&self, id: I, limit: RateLimit, now: DateTime<Utc>) -> Option<RateDecision> {
        // A copy: a refused request changes nothing that a later one depends on.
        let verdict = self.0.get(&id).copied()?.take(limit, now);
        (!verdict.is_allowed()).then_some(verdict)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    fn make_room(&mut self, now: DateTime<Utc>) {
        // A full bucket equals a new one.
        self.0.retain(|_, bucket| !bucket.is_full(now));
        if self.0.len() >= BUCKETS_MAX {
            let oldest = self.0.iter().min_by_key(|(id, bucket)| (bucket.used_at(), **id));
            if let Some(id) = oldest.map(|(id, _)| *id) {
                self.0.remove(&id);
            }
        }
    }
}
