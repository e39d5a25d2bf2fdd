//! The Anthropic Messages API as a [`Provider`](antiphon_core::Provider).
//!
//! `request` serializes the conversation, `dialect` parses the answer, `provider` combines the two
//! with a [`Transport`](antiphon_model_transport::Transport). It also works with every server that
//! is compatible.

mod dialect;
#[cfg(test)]
#[path = "../../transport/tests/fuzz_bodies/dialect.rs"]
mod ordeal;
mod provider;
mod request;

pub use provider::{Anthropic, AnthropicConfig, CacheTtl, DEFAULT_MAX_TOKENS, DEFAULT_URL};
