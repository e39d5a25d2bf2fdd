//! The Gemini API as a [`Provider`](antiphon_core::Provider).
//!
//! `request` writes the conversation as the wire wants it, `dialect` reads the answer, `failure`
//! reads what stands in its place, `provider` puts them on a
//! [`Transport`](antiphon_model_transport::Transport).

mod dialect;
mod failure;
#[cfg(test)]
#[path = "../../transport/tests/fuzz_bodies/dialect.rs"]
mod ordeal;
mod provider;
mod request;

pub use provider::{Config, DEFAULT_URL, Gemini};
