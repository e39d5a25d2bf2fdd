//! Requests per minute. Zero and more than [`RATE_PER_MINUTE_MAX`] are refused.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

/// Highest limit, in requests per minute.
pub const RATE_PER_MINUTE_MAX: u32 = 1_000_000;

/// Requests per minute. After a pause of a minute, all of them may come at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct RateLimit(NonZeroU32);

/// The number is not a valid limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a rate limit is from 1 to {RATE_PER_MINUTE_MAX} requests a minute, not {found}")]
pub struct RateLimitError {
    /// The refused number.
    pub found: u32,
}

impl RateLimit {
    /// From 1 to [`RATE_PER_MINUTE_MAX`] requests per minute.
    pub fn per_minute(requests: u32) -> Result<Self, RateLimitError> {
        NonZeroU32::new(requests)
            .filter(|requests| requests.get() <= RATE_PER_MINUTE_MAX)
            .map(Self)
            .ok_or(RateLimitError { found: requests })
    }

    /// The limit in requests per minute.
    pub fn requests(self) -> u32 {
        self.0.get()
    }
}

impl TryFrom<u32> for RateLimit {
    type Error = RateLimitError;

    fn try_from(requests: u32) -> Result<Self, RateLimitError> {
        Self::per_minute(requests)
    }
}

impl From<RateLimit> for u32 {
    fn from(limit: RateLimit) -> Self {
        limit.requests()
    }
}
