//! The toolbox, called as the orchestrator calls it.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod cut_off;
mod output_store;
mod redacting;
mod scanning;
mod toolbox;
mod world;
