//! The budget: raising its limits.

use serde::{Deserialize, Serialize};

/// An amount to add to the spend limits of this day and this month.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(example = serde_json::json!({ "usd": 2.5, "comment": "To finish the release." }))
)]
pub struct AllowSpending {
    /// Amount in US dollars, from 0.000000001 to 1000000.
    #[cfg_attr(feature = "schema", schemars(range(min = 0.000_000_001, max = 1_000_000.0)))]
    pub usd: f64,
    /// Id of the API key whose limits are raised; the limits of the whole project when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_id: Option<String>,
    /// Reason, for the journal; 4096 bytes at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}
