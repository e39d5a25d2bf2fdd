//! The runner against a real server on a loopback port: two journals, one task.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod away;
mod control;
mod create;
mod local;
mod messages;
mod orchestrators;
mod peer_server;
mod reconnect;
mod refuse;
mod relay;
