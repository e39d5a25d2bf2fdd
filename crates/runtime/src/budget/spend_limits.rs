//! Spend limits: in total and for each API key, and the errors for reached ones.
//!
//! A limit interrupts nothing: it is checked before each model call. A task that it refuses is suspended
//! and loses nothing.

use std::sync::Arc;

use antiphon_core::{
    Cost, ModelRef, PerWindow, PriceTable, SpendExceeded, SpendLimits, SpendWindow, TaskCreated,
};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Provider whose models cost nothing unless a price is configured.
const SCRIPTED: &str = "scripted";

/// Spend limits, in total and for each API key.
#[derive(Clone)]
pub struct Budget {
    /// Limits for all tasks together.
    pub total: SpendLimits,
    /// Limits for each payer.
    pub spend_limits: Arc<dyn SpendLimitSource>,
}

impl Default for Budget {
    fn default() -> Self {
        Self { total: SpendLimits::default(), spend_limits: Arc::new(NoSpendLimits) }
    }
}

/// Spend limits of the payers. Called before every model call: answer from memory.
pub trait SpendLimitSource: Send + Sync {
    /// Limits of one payer; empty when it has none.
    fn limits(&self, payer: &str) -> SpendLimits;

    /// All payers that have limits, by id.
    fn limited(&self) -> Vec<(String, SpendLimits)>;
}

/// No payer has limits.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSpendLimits;

impl SpendLimitSource for NoSpendLimits {
    fn limits(&self, _: &str) -> SpendLimits {
        SpendLimits::default()
    }

    fn limited(&self) -> Vec<(String, SpendLimits)> {
        Vec::new()
    }
}

/// Which limit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetScope {
    /// The limit of all tasks together.
    Total,
    /// The limit of an API key, by its id.
    Key(String),
}

impl BudgetScope {
    /// Stable code: `total` or `key`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Total => "total",
            Self::Key(_) => "key",
        }
    }

    /// Id of the API key, if it is the limit of one.
    pub fn key_id(&self) -> Option<&str> {
        match self {
            Self::Total => None,
            Self::Key(id) => Some(id),
        }
    }

    fn whose(&self) -> String {
        match self {
            Self::Total => "the budget".to_owned(),
            Self::Key(id) => format!("the budget of key {id}"),
        }
    }
}

/// A spend limit is reached: wait until `resets_at`, or raise it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} is spent: {spent} of {limit} for this {}; it resets at {resets_at}, or run `antiphon \
     budget allow USD{}`",
    scope.whose(),
    window.as_str(),
    scope.key_id().map(|id| format!(" --key {id}")).unwrap_or_default()
)]
pub struct BudgetSpent {
    /// Which limit is reached.
    pub scope: BudgetScope,
    /// Day or month.
    pub window: SpendWindow,
    /// The limit, including what was allowed beyond it.
    pub limit: Cost,
    /// What was spent.
    pub spent: Cost,
    /// When the next day or month begins.
    pub resets_at: DateTime<Utc>,
}

impl BudgetSpent {
    /// Status detail of a task that waits for it.
    pub(crate) fn detail(&self) -> Value {
        let mut detail = json!({
            "scope": self.scope.as_str(),
            "period": self.window,
            "limit_nano_usd": self.limit,
            "spent_nano_usd": self.spent,
            "resets_at": self.resets_at,
            "error": self.to_string(),
        });
        if let Some(id) = self.scope.key_id() {
            detail["key_id"] = json!(id);
        }
        detail
    }

    /// Whether the detail describes the same limit, regardless of the amount spent.
    pub(crate) fn is_described_by(&self, detail: Option<&Value>) -> bool {
        let Some(recorded) = detail else { return false };
        let own = self.detail();
        ["scope", "key_id", "period", "limit_nano_usd", "resets_at"]
            .iter()
            .all(|field| recorded.get(field) == own.get(field))
    }
}

/// Why the budget refuses a model call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BudgetRefusal {
    /// A spend limit is reached: the task is suspended.
    Spent(BudgetSpent),
    /// The price of the model is unknown: the task fails.
    PriceUnknown {
        /// The model, as `provider/model`.
        model: String,
    },
}

impl Budget {
    /// Whether any limit applies to what `payer` pays for.
    pub(crate) fn applies_to(&self, payer: Option<&str>) -> bool {
        let own = |payer| !self.spend_limits.limits(payer).is_empty();
        !self.total.is_empty() || payer.is_some_and(own)
    }

    /// A model of the task without a price, where limits apply.
    pub(crate) fn model_without_price(
        &self,
        task: &TaskCreated,
        prices: &PriceTable,
    ) -> Option<String> {
        let unknown =
            |model: &&ModelRef| model.provider() != SCRIPTED && prices.price(model).is_none();
        let model = task.model.iter().chain(&task.fallbacks).find(unknown)?;
        self.applies_to(task.payer.as_deref()).then(|| model.to_string())
    }

    /// Checks one limit.
    pub(crate) fn check(
        scope: &BudgetScope,
        limits: SpendLimits,
        sums: Sums,
        now: DateTime<Utc>,
    ) -> Result<(), BudgetSpent> {
        let checked = limits.raised(sums.raised).check(sums.spent, now);
        checked.map_err(|SpendExceeded { window, limit, spent, resets_at }| BudgetSpent {
            scope: scope.clone(),
            window,
            limit,
            spent,
            resets_at,
        })
    }
}

/// Amounts of the current day and month.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sums {
    pub(crate) spent: PerWindow,
    pub(crate) raised: PerWindow,
    /// Number of answers this month without a known price.
    pub(crate) unpriced_calls: u64,
}
