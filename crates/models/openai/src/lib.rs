//! The two OpenAI wires as [`Provider`](antiphon_core::Provider)s.
//!
//! [`ChatCompletions`] is what OpenAI and every compatible server speaks: llama.cpp, vLLM,
//! Ollama, LM Studio, OpenRouter, Groq, DeepSeek, Mistral. [`Responses`] is the newer wire, on
//! which models that reason get their own notes back.
//!
//! In each folder `request` writes the conversation as the wire wants it and `dialect` reads the
//! answer. `failure` reads the errors of both.

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

/// Where OpenAI is.
pub const DEFAULT_URL: &str = "https://api.openai.com/v1";

/// OpenAI refuses longer ids, and some servers anything but plain ones.
const IDS: IdRule = IdRule::Plain { bytes_max: 40 };
