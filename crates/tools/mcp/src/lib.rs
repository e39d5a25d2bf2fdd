//! Tools from MCP servers.
//!
//! [`Mcp`] starts the servers the user configured, as child processes or over HTTP, and runs their
//! tools through the same port as every other tool. A server is third-party code: this crate checks,
//! bounds and labels what it sends. A server that hangs, floods, crashes or sends false data affects
//! only its own calls.
//!
//! ```text
//! execute ─▶ catalog ─▶ server ─▶ connection ─▶ guard ─▶ stdio │ http
//!            schema     start,     one call      rate,     bytes in and out,
//!            checked    restart    with its      requests, messages repaired
//!                                  deadlines     progress  and bounded
//! ```
//!
//! The crate supports both protocols in use: with `initialize` (2025-11-25 and older) and without
//! it (2026-07-28).

mod catalog;
mod config;
mod connection;
mod mcp;
pub mod oauth;
mod server;
mod transport;

pub use catalog::listing::{PAGES_MAX, TOOLS_MAX};
pub use catalog::schema::{SCHEMA_BYTES_MAX, SCHEMA_DEPTH_MAX};
pub use catalog::{DESCRIPTION_BYTES_MAX, LIST_BYTES_MAX};
pub use config::globs::{GlobError, ToolGlobs};
pub use config::{
    ConfigError, HttpConfig, Launch, McpConfig, OAuthConfig, SERVER_NAME_BYTES_MAX, SERVERS_MAX,
    ServerConfig, ServerName, StdioConfig,
};
pub use connection::content::{BLOCKS_MAX, TEXT_BYTES_MAX};
pub use connection::limited_transport::REQUESTS_MAX;
pub use connection::rate_limiter::{MESSAGES_BURST_MAX, MESSAGES_PER_SECOND_MAX};
pub use mcp::{Mcp, McpOptions};
pub use server::process::INHERITED_VARIABLES;
pub use server::status::{ServerState, ServerStatus};
pub use server::{CALLS_MAX, RESTARTS_PER_MINUTE_MAX};
pub use transport::wire::MESSAGE_BYTES_MAX;
