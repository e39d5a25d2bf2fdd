//! The Gemini provider, through its public door, against a server that speaks the wire.
#![expect(clippy::expect_used, reason = "a test that cannot go on has failed")]

mod asking;
mod breaking;
mod conformance;
mod handing_over;
mod reading;
mod recorded;
mod refusing;
mod secret;
mod stopping;
mod tolerating;
mod world;
