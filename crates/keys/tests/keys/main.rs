//! API keys, through the public API: checks, the key file, rate limits.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod authorization;
mod capacity;
mod clocks;
mod crash;
mod hostile;
mod level;
mod limiter;
mod processes;
mod properties;
mod ring;
mod world;
