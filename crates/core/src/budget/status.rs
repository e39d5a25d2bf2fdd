//! The state of the budget: what is spent, and what the limits are.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::{Cost, TaskId};

/// State of every spend limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BudgetStatus {
    /// The budget of the whole project.
    pub total: ScopeStatus,
    /// Budgets of API keys that have limits, or that paid for calls this month.
    pub keys: Vec<ScopeStatus>,
    /// Tasks that wait for the budget, oldest first.
    pub waiting: Vec<TaskId>,
}

/// State of one budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScopeStatus {
    /// Id of the API key; absent for the whole project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_id: Option<String>,
    /// This day, in UTC.
    pub day: WindowStatus,
    /// This month, in UTC.
    pub month: WindowStatus,
    /// Number of calls this month without a known price. The budget does not count them.
    pub unpriced_calls: u64,
}

/// State of one budget in one day or month.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WindowStatus {
    /// What was spent, in billionths of a US dollar.
    pub spent_nano_usd: Cost,
    /// The limit with everything that was added to it; absent when there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_nano_usd: Option<Cost>,
    /// What was added to the configured limit.
    pub raised_nano_usd: Cost,
    /// When the next day or month begins.
    pub resets_at: DateTime<Utc>,
}
