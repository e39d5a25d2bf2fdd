//! Chat as its clients meet it: over a socket, on a journal in memory and a scripted model.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod agents;
mod approvals;
mod attacks;
mod canonical;
mod client;
mod disconnects;
mod errors;
mod exposure;
mod key_owners;
mod models;
mod openai;
mod responses;
mod sdk;
mod streams;
mod world;
