//! Rate limits: requests per minute, counted for each key, and wrong keys per minute, counted for each peer.

mod bucket;
mod buckets;
mod limiter;
mod rate_limit;
mod verdict;
mod wrong_keys;

pub use buckets::BUCKETS_MAX;
pub use limiter::Limiter;
pub use rate_limit::{RATE_PER_MINUTE_MAX, RateLimit, RateLimitError};
pub use verdict::RateDecision;
pub use wrong_keys::{Peer, WrongKeys};
