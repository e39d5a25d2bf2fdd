//! Both wires through the public door: what a server that is true to the wire, or untrue in a
//! way that real servers are, makes of an answer, and what it is sent.

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
