//! The Agent Client Protocol on standard input and output: an editor as a front end of a project. Version 1, and for an
//! editor that asks for it the draft of version 2 (`v2`).
//!
//! A session of the protocol is a session of the project; a prompt is a task in it. Everything that the editor sees
//! comes from the events of the task and its live deltas, as for every other watcher, so that a session that is
//! loaded after a kill shows what the journal has.
//!
//! | editor                        | project                                                                  |
//! |-------------------------------|--------------------------------------------------------------------------|
//! | `session/new`                 | nothing is recorded yet; the first prompt begins the session             |
//! | `session/prompt`              | a task; a message to the last task of the session if that has not ended  |
//! | `session/cancel`              | cancels the task and its descendants                                     |
//! | `session/load`, `resume`      | the session of the journal, with and without its messages                |
//! | `session/request_permission`  | an approval: once, for this task, always, or no                          |
//! | modes, config options         | permission mode, agent and model of the next tasks                       |
//! | the end of the input          | running tasks are interrupted; they go on with the next prompt           |
//!
//! Types of the wire come from one pinned crate, and only `schema` names it.

mod commands;
mod config_options;
mod initialize;
mod line_reader;
mod permission;
mod prompt_answer;
mod prompt_content;
mod replay;
mod schema;
mod server;
mod session;
mod session_requests;
mod task_plan;
mod tool_call_update;
mod turn;
mod turn_updates;
mod v2;
mod version;
mod wire;

pub use server::{AcpConfig, serve};
pub use session::SessionChoice;
