//! Metrics and traces, through the public door: events go in, text and spans come out.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bounds;
mod counting;
mod exporting;
mod failing;
mod following;
mod given;
mod golden;
mod parents;
mod properties;
mod receiver;
mod samples;
mod spans;
mod story;
mod trees;
