//! Live agents, their inboxes and what a server does for them, through the real binary. The models are
//! scripts: no key, no network.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod control;
mod once;
mod project;
#[path = "../support/project_folder.rs"]
mod project_folder;
mod sending;
mod waiting;
