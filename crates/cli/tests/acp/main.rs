//! `antiphon acp` with the real binary: an editor that speaks the Agent Client Protocol in lines of JSON.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/project_folder.rs"]
mod project_folder;

mod acpx;
mod editor;
mod hostile;
mod killed;
mod sessions;
mod turns;
mod v2;
