//! Storage that fails and stops that drain, with the real binary.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod breaker;
mod commands;
mod draining;
mod full_disk;
#[path = "../support/project_folder.rs"]
mod project_folder;
mod replaced;
#[path = "../support/project_server.rs"]
mod server;
