//! The file-drop door, through its public door: files go in, files come out.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod actions;
mod crash;
mod dropping;
mod guide;
mod hostile;
mod latency;
mod many;
mod once;
mod ordering;
mod passing;
mod properties;
mod watching;
mod world;
mod writing;
