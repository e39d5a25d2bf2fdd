//! The door as a client meets it: over a socket, byte by byte, on a journal in memory and a
//! scripted model.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod agents;
mod agents_key;
mod attacks;
mod budget;
mod client;
mod diff;
mod ending;
mod fuzz;
mod health;
mod hooks;
mod idempotency;
mod inbox;
mod invocations;
mod journal;
mod keys;
mod leaving;
mod limits;
mod listing;
mod metrics;
mod openapi;
mod orders;
mod ring;
mod sessions;
mod smuggling;
mod streams;
mod tasks;
mod usage;
mod ways;
mod webhooks;
mod world;
