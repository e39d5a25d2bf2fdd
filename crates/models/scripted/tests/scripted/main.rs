//! The scripted provider, through its public door.
#![expect(clippy::expect_used, reason = "a test that cannot go on has failed")]

mod builtin;
mod calling;
mod choosing;
mod conformance;
mod docs;
mod failing;
mod parsing;
mod piece;
mod streaming;
mod world;
