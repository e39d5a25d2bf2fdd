//! The proxy against servers on loopback. Names come from a resolver of the test; nothing is sent
//! beyond loopback.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod limits;
mod refusals;
mod requests;
mod world;
