//! The gate through its public door: configurations, calls, verdicts.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bash;
mod corpus;
mod properties;
mod table;
mod world;
