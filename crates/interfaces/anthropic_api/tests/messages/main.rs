//! Messages as their clients meet them: over a socket, on a journal in memory and a scripted model.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod attacks;
mod keys;
mod world;
