//! Servers of all kinds: real ones that others wrote, and one that is as bad as it is told to be.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod calling;
mod config;
mod conformance;
mod dying;
mod flooding;
mod http;
mod listing;
mod process;
mod real;
mod world;
