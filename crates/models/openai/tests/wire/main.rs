//! Both wires through the public API: how answers of correct and deviating servers are parsed, and
//! which requests are sent.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod chat_answers;
mod chat_faults;
mod chat_requests;
mod conformance;
mod fixtures;
mod refusals;
mod responses_answers;
mod responses_faults;
mod responses_requests;
mod world;
