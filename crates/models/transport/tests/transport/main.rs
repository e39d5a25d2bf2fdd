//! The transport, through its public API, against a scripted server.
#![expect(clippy::expect_used, reason = "a test that cannot go on has failed")]

mod connections;
mod document;
mod endpoint;
mod errors;
mod events;
mod long_body;
mod redirect;
mod secret;
mod world;
