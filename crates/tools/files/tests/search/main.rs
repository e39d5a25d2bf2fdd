//! `grep` and `glob`, through their public doors, on real trees of files.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod globbing;
mod grepping;
mod hostile;
mod ignoring;
mod stopping;
mod world;
