//! `antiphon backup` and `antiphon restore`: beside a server at work, killed at any moment, and with
//! files that are no backups.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod backing_up;
mod project;
#[path = "../support/project_folder.rs"]
mod project_folder;
mod restoring;
