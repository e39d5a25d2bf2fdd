//! The gate through its public door: configurations, calls, verdicts.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod bash;
mod config;
mod explained;
mod grants;
mod guide;
mod narrowed;
mod network;
mod properties;
mod remembered;
mod table;
mod tools;
mod understood;
mod world;
mod wrappers;
