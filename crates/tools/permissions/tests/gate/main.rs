//! The gate through its public interface: configurations, calls, verdicts.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod bash;
mod by_rules;
mod config;
mod explained;
mod grants;
mod guide;
mod narrowed;
mod network;
mod pages;
mod policy;
mod properties;
mod remembered;
mod table;
mod tools;
mod understood;
mod widened;
mod world;
mod wrappers;
