//! What an operator of a server needs: keys for others, metrics, traces and a log.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod collector;
mod keys;
mod logs;
#[path = "../support/project_folder.rs"]
mod project_folder;
mod restored;
mod secrets;
mod server;
mod telemetry;
mod terminals;
mod ways;
mod webhooks;
