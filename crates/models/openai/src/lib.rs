//! The two OpenAI wires as [`Provider`](antiphon_core::Provider)s.
//!
//! [`ChatCompletions`] is the wire of OpenAI and of every compatible server: llama.cpp, vLLM,
//! Ollama, LM Studio, OpenRouter, Groq, DeepSeek, Mistral. [`Responses`] is the newer wire, on
//! which reasoning models get their own reasoning back.
//!
//! In each folder, `request` serializes the conversation and `dialect` parses the answer. `failure`
//! parses the errors of both.

mod chat;
mod data_url;
mod effort;
mod failure;
#[cfg(test)]
#[path = "../../transport/tests/fuzz_bodies/dialect.rs"]
mod ordeal;
mod responses;

use antiphon_core::IdRule;

pub use chat::{ChatCompletions, ChatConfig, ChatQuirks, EmptyContent, MaxTokensField};
pub use effort::{HIGH_EFFORT_TOKENS_MIN, MEDIUM_EFFORT_TOKENS_MIN};
pub use responses::{Responses, ResponsesConfig, ResponsesQuirks};

/// Base address of the OpenAI API.
pub const DEFAULT_URL: &str = "https://api.openai.com/v1";

/// OpenAI refuses longer ids, and some servers anything but plain ones.
const IDS: IdRule = IdRule::Plain { bytes_max: 40 };
