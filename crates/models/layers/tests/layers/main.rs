//! Every layer, through its public door. Time is paused wherever the layer's clock can be.
#![expect(clippy::expect_used, reason = "a test that cannot go on has failed")]

mod breaker;
mod concurrency;
mod fallback;
mod fault;
mod piece;
mod played;
mod rate_limit;
mod retry;
mod text_calls;
mod text_calls_cut;
mod timeouts;
mod world;
