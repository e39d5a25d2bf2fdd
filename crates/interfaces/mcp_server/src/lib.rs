//! A server of the Model Context Protocol: agents of the project as tools of any MCP client.
//!
//! It is served on standard input and output ([`serve`]) and over HTTP at `/mcp` ([`McpServer`]), with the same handler
//! (`handler`). Both protocol generations are spoken: with `initialize` (2025-11-25 and older) and without
//! (2026-07-28).
//!
//! | MCP                        | project                                                                       |
//! |----------------------------|-------------------------------------------------------------------------------|
//! | a tool per agent           | a task of the agent; the call lasts until the task ends or waits for a person |
//! | cancellation               | cancels the task and its descendants                                          |
//! | `tasks/*` (2026-07-28)     | the same task, for clients that declare the extension                         |
//! | tools `task_…`             | reads, waits for, continues and cancels the tasks of the caller               |
//! | elicitation                | an approval, for a caller who may decide                                      |
//! | resources, prompts         | tasks and sessions of the caller; one prompt per agent                        |
//!
//! What a client sends is written by a program, usually by a model: it is recorded as an event of the source `mcp`,
//! and no tool decides an approval.

mod agent_offer;
mod approval;
mod backend;
mod call;
mod failure;
mod feed;
mod handler;
mod http;
mod mcp_task;
mod progress;
mod prompts;
mod resources;
mod stdio;
mod task_tools;
mod task_view;
mod tools;

pub use http::McpServer;
pub use stdio::{StdioConfig, StdioError, serve};
