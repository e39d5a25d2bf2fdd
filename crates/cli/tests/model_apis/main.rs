//! Chat completions, Responses and Messages of the real binary: hostile requests, clients that leave, and keys that see
//! their own work alone.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/project_folder.rs"]
mod project_folder;
#[path = "../support/project_server.rs"]
mod project_server;

mod attacks;
mod client;
mod owners;
