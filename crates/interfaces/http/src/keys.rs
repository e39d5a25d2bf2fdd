//! API keys beside the token: who holds one comes as far as its level reaches, and as often as its limit
//! lets them. When the file of keys cannot be used, nobody with a key comes in, and the token still does.

use antiphon_keys::{KeyRing, Limiter, RateLimit, RateLimitError};

/// Requests a minute of a key that has no limit of its own.
pub const RATE_PER_MINUTE_DEFAULT: u32 = 600;

/// The keys that are let in, and how often each is used.
#[derive(Debug)]
pub struct Keys {
    /// Who has a key.
    pub ring: KeyRing,
    /// How often each of them comes.
    pub limiter: Limiter,
}

impl Keys {
    /// The keys of a ring; one without a limit of its own has [`RATE_PER_MINUTE_DEFAULT`].
    pub fn new(ring: KeyRing) -> Result<Self, RateLimitError> {
        let limiter = Limiter::new(RateLimit::per_minute(RATE_PER_MINUTE_DEFAULT)?);
        Ok(Self { ring, limiter })
    }
}
