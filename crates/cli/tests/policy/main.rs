//! A policy of the machine holds against its users: each class of ways around it is tried with the real binary,
//! as root and as an ordinary user, first without the policy to show that the way exists.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../support/users.rs"]
mod users;

mod file;
mod limits;
mod models;
mod rules;
mod sandbox;
mod world;
