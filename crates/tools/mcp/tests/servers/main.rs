//! Servers of all kinds: real ones that others wrote, and one that misbehaves as the test asks.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod calling;
mod config;
mod conformance;
mod dying;
mod flooding;
mod http;
mod listing;
mod oauth;
mod process;
mod real;
mod world;
