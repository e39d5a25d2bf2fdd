//! API keys, through the public door: who is let in, what the file may be, and how often is too often.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod authorization;
mod beside;
mod clocks;
mod crash;
mod hostile;
mod level;
mod limiter;
mod many;
mod properties;
mod ring;
mod world;
