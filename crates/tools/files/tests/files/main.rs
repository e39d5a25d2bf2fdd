//! The file tools, called as the orchestrator calls them.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod calls;
mod cut_off;
mod edit;
mod hostile;
mod limits;
mod outside;
mod property;
mod races;
mod read;
mod workspace;
mod world;
mod write;
