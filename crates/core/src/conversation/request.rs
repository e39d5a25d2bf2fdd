//! One request to a model.

use std::num::NonZeroU32;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{MessageList, Sampling, Tool};

/// Everything a provider needs for one model call. Absent fields take the provider's default.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Request {
    /// Name of the model at the provider; empty for the provider's default.
    #[serde(default)]
    pub model: String,
    /// System prompt; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub system_prompt: String,
    /// The conversation so far.
    pub messages: MessageList,
    /// Tools that the model may call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Arc<Tool>>,
    /// Whether the model may, must, or must not call tools.
    #[serde(default, skip_serializing_if = "ToolChoice::is_auto")]
    pub tool_choice: ToolChoice,
    /// Most tokens of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<NonZeroU32>,
    /// Most tokens of thinking before the answer. Absent: no thinking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_tokens: Option<NonZeroU32>,
    /// Sampling temperature, 0 to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<Temperature>,
    /// Further options of the answer.
    #[serde(default, skip_serializing_if = "Sampling::is_default")]
    pub sampling: Sampling,
    /// A person wants this attempt now: it is sent even to a provider that is left alone because it failed too
    /// often. Not a part of what is sent.
    #[serde(skip)]
    pub is_urgent: bool,
}

/// Whether the model may call tools.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// The model must not call a tool.
    None,
    /// The model must call a tool of its choice.
    Required,
    /// The model must call this tool.
    Named(String),
}

impl ToolChoice {
    fn is_auto(&self) -> bool {
        *self == Self::Auto
    }
}

/// Options of the model calls of a task.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ModelOptions {
    /// Sampling temperature, 0 to 2. Absent: the default of the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<Temperature>,
    /// Whether the model may, must, or must not call tools. Absent: it may.
    #[serde(default, skip_serializing_if = "ToolChoice::is_auto")]
    pub tool_choice: ToolChoice,
    /// Most tokens of thinking before each answer. Absent: the default of the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_tokens: Option<NonZeroU32>,
    /// Further options of each answer. Absent: the defaults of the provider.
    #[serde(default, skip_serializing_if = "Sampling::is_default")]
    pub sampling: Sampling,
}

impl ModelOptions {
    /// Whether every option has its default.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A sampling temperature from 0 to 2.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Temperature(f64);

/// The number is not a temperature.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("`temperature` must be from 0 to 2, not {found}")]
pub struct TemperatureError {
    /// The number that was found.
    pub found: f64,
}

impl Temperature {
    /// Checks a number from 0 to 2; refuses NaN.
    pub fn new(value: f64) -> Result<Self, TemperatureError> {
        if (0.0..=2.0).contains(&value) {
            Ok(Self(value))
        } else {
            Err(TemperatureError { found: value })
        }
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Temperature {
    type Error = TemperatureError;

    fn try_from(value: f64) -> Result<Self, TemperatureError> {
        Self::new(value)
    }
}

impl From<Temperature> for f64 {
    fn from(temperature: Temperature) -> Self {
        temperature.0
    }
}
