//! The runner `terminal` with real programs, in terminals that the tests sit at.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]
#![expect(clippy::wildcard_enum_match_arm, reason = "a test looks at the events it is about")]

mod bounded;
mod checking;
mod completing;
mod context;
mod dying_journal;
mod ending;
mod hostile;
mod orchestrated;
mod permission;
mod processes;
mod prompt;
mod restarting;
mod typing;
mod viewer;
mod watching;
mod world;
