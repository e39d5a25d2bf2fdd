//! The name of a model, `PROVIDER/MODEL`, as people write it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Longest model name, in bytes.
pub const MODEL_REF_BYTES_MAX: usize = 200;

/// A model of a provider: `anthropic/claude-sonnet-4-5`, `local/org/model.gguf`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ModelRef {
    provider: String,
    model: String,
}

/// Why a text does not name a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` names no model: write PROVIDER/MODEL, for instance `scripted/hello`")]
pub struct ModelRefError {
    /// The text that was found.
    pub found: String,
}

impl ModelRef {
    /// Reads `PROVIDER/MODEL`. The model may contain further slashes, the provider may not.
    pub fn parse(text: &str) -> Result<Self, ModelRefError> {
        let text = text.trim();
        let refuse = || ModelRefError { found: text.to_owned() };
        let (provider, model) = text.split_once('/').ok_or_else(refuse)?;
        let provider_is_plain =
            provider.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '.');
        let model_is_plain = !model.chars().any(|c| c.is_control() || c.is_whitespace());
        if provider.is_empty()
            || model.is_empty()
            || text.len() > MODEL_REF_BYTES_MAX
            || !provider_is_plain
            || !model_is_plain
        {
            return Err(refuse());
        }
        Ok(Self { provider: provider.to_owned(), model: model.to_owned() })
    }

    /// The provider's name in the configuration.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// The model's name at that provider.
    pub fn model(&self) -> &str {
        &self.model
    }
}

impl fmt::Display for ModelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.model)
    }
}

impl FromStr for ModelRef {
    type Err = ModelRefError;

    fn from_str(text: &str) -> Result<Self, ModelRefError> {
        Self::parse(text)
    }
}

impl TryFrom<String> for ModelRef {
    type Error = ModelRefError;

    fn try_from(text: String) -> Result<Self, ModelRefError> {
        Self::parse(&text)
    }
}

impl From<ModelRef> for String {
    fn from(model: ModelRef) -> Self {
        model.to_string()
    }
}
