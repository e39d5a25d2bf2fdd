//! Any number of processes in one project, one owner of its journal: with the real binary.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/anthropic_wire.rs"]
mod anthropic_wire;
#[path = "../support/project_folder.rs"]
mod project_folder;
#[path = "../support/pty.rs"]
mod pty;

mod background;
mod beside;
mod chat;
mod ending_owner;
mod interrupted_tree;
mod left_behind;
mod lingering;
mod long_path;
mod mcp;
mod missing_key;
mod piped;
mod project;
mod resume;
mod settings;
mod start;
mod take_over;
mod terminal;
