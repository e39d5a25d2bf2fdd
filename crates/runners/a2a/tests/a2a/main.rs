//! The runner `a2a`: against the A2A server of another Antiphon, and against agents that do what they should not.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod antiphon_agent;
mod cards;
mod fake_agent;
mod following;
mod hostile;
mod local;
mod outages;
mod sdk;
mod waiting;
