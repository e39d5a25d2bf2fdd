//! The Anthropic Messages API as a [`Provider`](antiphon_core::Provider).
//!
//! `request` writes the conversation as the wire wants it, `dialect` reads the answer,
//! `provider` puts the two on a [`Transport`](antiphon_model_transport::Transport). It also serves
//! every server that speaks the same wire.

mod dialect;
#[cfg(test)]
#[path = "../../transport/tests/fuzz_bodies/dialect.rs"]
mod ordeal;
mod provider;
mod request;

pub use provider::{Anthropic, CacheTtl, Config, DEFAULT_MAX_TOKENS, DEFAULT_URL};
