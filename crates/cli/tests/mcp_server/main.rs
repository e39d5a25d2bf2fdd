//! The MCP server with the real binary: on standard input and output, and at `/mcp`.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/project_folder.rs"]
mod project_folder;

mod attacks;
mod http;
mod peers;
mod stdio;
mod world;
