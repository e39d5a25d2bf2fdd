//! The scripted provider, through its public API.
#![expect(clippy::expect_used, reason = "a test that cannot go on has failed")]

mod builtin;
mod calls;
mod conformance;
mod docs;
mod failures;
mod matching;
mod parsing;
mod piece;
mod streaming;
mod world;
