//! Layers around any provider. Each layer is a provider itself and knows nothing of the others; the
//! binary combines them.
//!
//! | layer            | what it adds                                                        |
//! |------------------|---------------------------------------------------------------------|
//! | [`Timeouts`]     | timeouts for the first byte and for the next one                    |
//! | [`Retry`]        | retries, as long as no part of the answer was shown                 |
//! | [`Concurrency`]  | a limit of concurrent answers                                       |
//! | [`RateLimit`]    | a limit of requests per minute                                      |
//! | [`Breaker`]      | a pause for a provider that keeps failing                           |
//! | [`Fallback`]     | another model when the first cannot answer                          |
//! | [`TextCalls`]    | tool calls of models that write them as text                        |
//!
//! From the inside out: text calls, timeouts, rate limit, retry, breaker, concurrency, fallback.
//! Text that is held back has not been shown, so retry must be outside of text calls. A request
//! that waited for a slot must still see an open breaker, so concurrency is outside of the breaker.

mod breaker;
mod concurrency;
mod delayed_source;
mod fallback;
mod rate_limit;
mod retry;
mod text_calls;
mod timeouts;

pub use breaker::{Breaker, BreakerConfig, BreakerState};
pub use concurrency::Concurrency;
pub use fallback::{Fallback, FallbackModel};
pub use rate_limit::RateLimit;
pub use retry::{Retry, RetryConfig};
pub use text_calls::TextCalls;
pub use timeouts::{Timeouts, TimeoutsConfig};
