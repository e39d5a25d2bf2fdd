//! Settings of single models.

use std::num::NonZeroU64;

use antiphon_core::{ModelRef, Price};
use serde::Deserialize;

/// Settings of one model.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelConfig {
    /// The model writes tool calls as text.
    pub text_tool_calls: bool,
    /// Models to ask, in order, when this one cannot answer.
    pub fallbacks: Vec<ModelRef>,
    /// Its price; the built-in one when absent.
    pub price: Option<Price>,
    /// Most tokens a request and its answer may have together; the built-in size when absent.
    pub context_tokens: Option<NonZeroU64>,
}
