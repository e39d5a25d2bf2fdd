//! `grep` and `glob`, as their callers do, on real trees of files.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod globbing;
mod grepping;
mod hostile;
mod ignoring;
mod stopping;
mod world;
