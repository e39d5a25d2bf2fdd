//! The Gemini API as a [`Provider`](antiphon_core::Provider).
//!
//! `request` serializes the conversation, `dialect` parses the answer, `failure` parses errors,
//! `provider` combines them with a [`Transport`](antiphon_model_transport::Transport).

mod dialect;
mod failure;
#[cfg(test)]
#[path = "../../transport/tests/fuzz_bodies/dialect.rs"]
mod ordeal;
mod provider;
mod request;

pub use provider::{DEFAULT_URL, Gemini, GeminiConfig};
