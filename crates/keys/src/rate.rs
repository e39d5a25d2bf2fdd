//! Rate limits: requests per minute, counted for each key.

mod bucket;
mod limiter;
mod rate_limit;
mod verdict;

pub use limiter::{BUCKETS_MAX, Limiter};
pub use rate_limit::{RATE_PER_MINUTE_MAX, RateLimit, RateLimitError};
pub use verdict::Verdict;
