//! A2A 1.0 as its clients meet it: over a socket, on a journal in memory and a scripted model.
//!
//! `must.rs` has the requirements of the specification, each with its section; `attacks.rs` what must not work;
//! `cards.rs` what a card declares and how it is signed;
//! `keys.rs` what a caller does not learn of another one.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod attacks;
mod cards;
mod disconnects;
mod keys;
mod must;
mod push;
mod world;
