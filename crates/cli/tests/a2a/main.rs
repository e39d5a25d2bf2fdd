//! A2A with the real binary: `antiphon serve`, and remote agents of `antiphon run`.
//!
//! `sdk.rs` has the official SDKs as clients, `attacks.rs` what must not work.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/project_folder.rs"]
mod project_folder;

mod attacks;
mod remote;
mod sdk;
mod world;
