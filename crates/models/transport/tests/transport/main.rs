//! The transport, through its public door, against a server that does as it is told.
#![expect(clippy::expect_used, reason = "a test that cannot go on has failed")]

mod connecting;
mod document;
mod endpoint;
mod events;
mod failing;
mod redirect;
mod secret;
mod world;
