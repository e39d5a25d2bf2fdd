//! The client against a real server: every route it has, the errors, and streams over connections that
//! break.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod errors;
mod routes;
mod server;
mod streams;
