//! The file tools, through the door that the orchestrator uses.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod aside;
mod edit;
mod hostile;
mod limits;
mod property;
mod races;
mod read;
mod redacting;
mod toolbox;
mod workspace;
mod world;
mod write;
