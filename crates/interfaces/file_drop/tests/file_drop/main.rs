//! The file-drop interface, through its public API: request files go in, response files come out.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod actions;
mod client;
mod crash;
mod guide;
mod hostile;
mod load;
mod once;
mod ordering;
mod properties;
mod single_pass;
mod watching;
mod world;
mod writing;
