//! One request to a model.

use std::num::NonZeroU32;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Message, Tool};

/// Everything a provider needs to ask a model once. What is absent is the provider's default.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Request {
    /// The model's name at the provider; empty for the provider's default.
    #[serde(default)]
    pub model: String,
    /// The scene; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub system_prompt: String,
    /// The conversation so far.
    pub messages: Vec<Arc<Message>>,
    /// What the model may call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
    /// Whether it may, must, or must not call.
    #[serde(default, skip_serializing_if = "ToolChoice::is_auto")]
    pub tool_choice: ToolChoice,
    /// The longest answer wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<NonZeroU32>,
    /// How many tokens the model may think before it answers; it does not think when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_tokens: Option<NonZeroU32>,
    /// How adventurous the answer may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<Temperature>,
}

/// Whether the model may call tools.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// As it likes.
    #[default]
    Auto,
    /// It must not.
    None,
    /// It must call one, of its choice.
    Required,
    /// It must call this one.
    Named(String),
}

impl ToolChoice {
    fn is_auto(&self) -> bool {
        *self == Self::Auto
    }
}

/// How the model of a task is asked.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ModelOptions {
    /// How adventurous its answers may be; the provider's default when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<Temperature>,
    /// Whether it may, must, or must not call tools.
    #[serde(default, skip_serializing_if = "ToolChoice::is_auto")]
    pub tool_choice: ToolChoice,
}

impl ModelOptions {
    /// Whether there is nothing special about it.
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

/// A sampling temperature from 0 to 2. Nothing else can be one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Temperature(f64);

/// The number is no temperature.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("`temperature` must be from 0 to 2, not {found}")]
pub struct TemperatureError {
    /// The number.
    pub found: f64,
}

impl Temperature {
    /// Takes a number from 0 to 2; NaN is none.
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
