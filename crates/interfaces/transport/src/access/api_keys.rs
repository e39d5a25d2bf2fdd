//! API keys beside the token. A key allows what its level allows, as often as its rate limit allows. While the
//! file of keys cannot be read, no key is accepted, and the token still is.

use std::sync::Arc;

use antiphon_keys::{KeyRing, Limiter, RateLimit, RateLimitError};

/// Requests per minute of a key without a rate limit of its own.
pub const RATE_PER_MINUTE_DEFAULT: u32 = 600;

/// The API keys that are accepted, and their rate limits.
#[derive(Debug)]
pub struct Keys {
    /// The keys.
    pub ring: Arc<KeyRing>,
    /// Counts the requests of each key.
    pub limiter: Limiter,
}

impl Keys {
    /// The keys of a ring; a key without a rate limit of its own gets [`RATE_PER_MINUTE_DEFAULT`].
    pub fn new(ring: KeyRing) -> Result<Self, RateLimitError> {
        let limiter = Limiter::new(RateLimit::per_minute(RATE_PER_MINUTE_DEFAULT)?);
        Ok(Self { ring: Arc::new(ring), limiter })
    }
}
