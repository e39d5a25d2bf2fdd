//! Status of the spend limits, as interfaces show it.

use antiphon_core::{Cost, TaskId};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// Status of all spend limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BudgetStatus {
    /// The total limit.
    pub total: ScopeStatus,
    /// Keys that have limits, or that paid for something this month.
    pub keys: Vec<ScopeStatus>,
    /// Ids of the tasks that wait for budget, oldest first.
    pub waiting: Vec<TaskId>,
}

/// Status of one spend limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScopeStatus {
    /// Id of the API key; absent for the total.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_id: Option<String>,
    /// The current day.
    pub day: WindowStatus,
    /// The current month.
    pub month: WindowStatus,
    /// Number of answers this month without a known price. They are not in the sums.
    pub unpriced_calls: u64,
}

/// Status of a spend limit in a day or a month.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WindowStatus {
    /// Amount spent.
    pub spent_nano_usd: Cost,
    /// Limit, including what was allowed beyond it; no limit when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_nano_usd: Option<Cost>,
    /// Amount allowed beyond the configured limit.
    pub raised_nano_usd: Cost,
    /// When the next day or month begins.
    pub resets_at: DateTime<Utc>,
}
