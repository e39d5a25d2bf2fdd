//! Metrics and traces, through the public API: events go in, text and spans come out.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bounds;
mod caller_values;
mod counting;
mod exporting;
mod failing;
mod following;
mod golden;
mod journal_builder;
mod properties;
mod receiver;
mod remote_parents;
mod samples;
mod spans;
mod trees;
