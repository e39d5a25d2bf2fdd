//! The way to a first answer: keys in the environment, the guided start, settings, MCP servers.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../support/project_folder.rs"]
mod project_folder;
#[path = "../support/pty.rs"]
mod pty;

mod guide;
mod help;
mod keys;
mod mcp_servers;
mod minutes;
mod notify;
mod settings;
mod shell;
mod world;
