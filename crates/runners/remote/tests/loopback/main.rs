//! The runner against a real server on a loopback port: two journals, one conversation.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod beginning;
mod breaking;
mod crossing;
mod here;
mod orchestrated;
mod proxy;
mod refusing;
mod relaying;
mod there;
