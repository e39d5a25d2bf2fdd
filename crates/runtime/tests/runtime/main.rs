//! The orchestrator through its handle, on a journal in memory and a scripted model.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod cancel;
mod crash;
mod follow;
mod task;
mod world;
