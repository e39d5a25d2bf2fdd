//! The client against a real server: every route it has, the errors, and streams over connections that
//! break; and against servers that are broken or hostile.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod attacks;
mod errors;
mod fake_server;
mod journal;
mod routes;
mod server;
mod streams;
