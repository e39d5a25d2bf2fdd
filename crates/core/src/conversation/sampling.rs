//! Options of an answer that a client may ask for beyond its temperature. A provider sends those that its wire
//! knows, and leaves out the others.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Most stop sequences of a request.
pub const STOP_SEQUENCES_MAX: usize = 16;

/// Most entries of metadata.
pub const METADATA_MAX: usize = 16;

/// How a model samples, reasons and stops. Absent fields take the provider's default.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Sampling {
    /// Only the most likely tokens that together have this probability are considered, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<TopP>,
    /// Texts at which the answer stops, without them. At most [`STOP_SEQUENCES_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// The same seed makes the same answer more likely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// Makes tokens that are in the text less likely, -2 to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<Penalty>,
    /// Makes tokens less likely the more often they are in the text, -2 to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<Penalty>,
    /// How much the model reasons before its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<ReasoningEffort>,
    /// Whether one answer may call several tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// What a provider that stores the answer keeps with it. At most [`METADATA_MAX`] entries.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

impl Sampling {
    /// Whether every option has its default.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How much a model reasons before its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReasoningEffort {
    /// Not at all.
    None,
    /// As little as possible.
    Minimal,
    /// A little.
    Low,
    /// The usual.
    Medium,
    /// Much.
    High,
    /// As much as possible.
    XHigh,
}

impl ReasoningEffort {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::XHigh => "xhigh",
        }
    }
}

/// The number is out of range.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("must be from {min} to {max}, not {found}")]
pub struct SamplingError {
    /// The smallest number allowed.
    pub min: f64,
    /// The largest number allowed.
    pub max: f64,
    /// The number that was found.
    pub found: f64,
}

/// A probability from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct TopP(f64);

/// A number from -2 to 2.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Penalty(f64);

impl TryFrom<f64> for TopP {
    type Error = SamplingError;

    fn try_from(found: f64) -> Result<Self, SamplingError> {
        within(0.0, 1.0, found).map(Self)
    }
}

impl TryFrom<f64> for Penalty {
    type Error = SamplingError;

    fn try_from(found: f64) -> Result<Self, SamplingError> {
        within(-2.0, 2.0, found).map(Self)
    }
}

impl From<TopP> for f64 {
    fn from(TopP(number): TopP) -> Self {
        number
    }
}

impl From<Penalty> for f64 {
    fn from(Penalty(number): Penalty) -> Self {
        number
    }
}

/// Refuses NaN too.
fn within(min: f64, max: f64, found: f64) -> Result<f64, SamplingError> {
    if (min..=max).contains(&found) { Ok(found) } else { Err(SamplingError { min, max, found }) }
}
