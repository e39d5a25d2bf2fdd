//! Counts how often the same request occurs, in memory. Above [`ATTEMPTS_MAX`] different requests,
//! the oldest is forgotten and starts at one again.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::sync::{Mutex, PoisonError};

use antiphon_core::Request;

/// Most requests that are counted.
pub const ATTEMPTS_MAX: usize = 4096;

/// Number of attempts of each request.
#[derive(Debug, Default)]
pub(crate) struct Attempts(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    by_request: HashMap<u64, u32>,
    /// Oldest first.
    order: VecDeque<u64>,
}

impl Attempts {
    /// Counts `request` once more: 1 when it is new.
    pub(crate) fn count(&self, request: &Request) -> Result<u32, serde_json::Error> {
        let mut digest = Digest(DefaultHasher::new());
        serde_json::to_writer(&mut digest, request)?;
        // The counts are consistent after every statement, so a poisoned lock does no harm.
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(counts.count(digest.0.finish()))
    }
}

impl Counts {
    fn count(&mut self, request: u64) -> u32 {
        if !self.by_request.contains_key(&request) {
            if self.order.len() == ATTEMPTS_MAX
                && let Some(oldest) = self.order.pop_front()
            {
                self.by_request.remove(&oldest);
            }
            self.order.push_back(request);
        }
        let count = self.by_request.entry(request).or_default();
        *count = count.saturating_add(1);
        *count
    }
}

/// Hashes JSON while it is serialized, so that a long conversation is not copied.
struct Digest(DefaultHasher);

impl io::Write for Digest {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
