//! The Anthropic provider, through its public API, against a model server.
#![expect(clippy::expect_used, reason = "a test that cannot go on has failed")]

mod answers;
mod caching;
mod compatibility;
mod conformance;
mod errors;
mod history;
mod interruptions;
mod recorded;
mod requests;
mod secret;
mod stop_reasons;
mod world;
