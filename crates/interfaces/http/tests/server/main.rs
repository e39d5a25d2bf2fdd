//! The HTTP interface as a client meets it: over a socket, byte by byte, on a journal in memory and a
//! scripted model.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod agents;
mod agents_key;
mod attacks;
mod budget;
mod client;
mod diff;
mod disconnects;
mod fuzz;
mod health;
mod idempotency;
mod inbox;
mod invocations;
mod journal;
mod key_access;
mod key_server;
mod keys;
mod limits;
mod listeners;
mod listing;
mod metrics;
mod openapi;
mod own_scope;
mod sessions;
mod shutdown;
mod smuggling;
mod streams;
mod task_control;
mod tasks;
mod usage;
mod webhook_server;
mod webhooks;
mod world;
