//! Every layer, through its public API. Time is paused where the layer's clock allows it.
#![expect(clippy::expect_used, reason = "a test that cannot go on has failed")]

mod breaker;
mod concurrency;
mod fallback;
mod fault;
mod piece;
mod rate_limit;
mod retry;
mod test_provider;
mod text_calls;
mod text_calls_split;
mod timeouts;
mod world;
