//! What may be spent in all and by each who pays, and the word for it that no more may.
//!
//! A budget stops nothing that is under way: it is asked before each model is. A task that it keeps from
//! its model waits, and loses nothing.

use std::sync::Arc;

use antiphon_core::{
    Cost, ModelRef, PerWindow, PriceTable, SpendExceeded, SpendLimits, SpendWindow, TaskCreated,
};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::deps::RuntimeDeps;

/// The provider whose models cost nothing unless somebody gives them a price.
const SCRIPTED: &str = "scripted";

/// What the orchestrator is given: a world, and what may be spent in it. A world alone has no budget.
pub struct RuntimeConfig {
    /// What it works with.
    pub world: RuntimeDeps,
    /// What it may spend.
    pub budget: Budget,
}

impl From<RuntimeDeps> for RuntimeConfig {
    fn from(world: RuntimeDeps) -> Self {
        Self { world, budget: Budget::default() }
    }
}

/// What may be spent.
#[derive(Clone)]
pub struct Budget {
    /// By all together.
    pub total: SpendLimits,
    /// By each who pays.
    pub spend_limits: Arc<dyn SpendLimitSource>,
}

impl Default for Budget {
    fn default() -> Self {
        Self { total: SpendLimits::default(), spend_limits: Arc::new(NoSpendLimits) }
    }
}

/// Knows what those may spend who pay for tasks. Asked before every answer of a model, so it answers
/// from memory.
pub trait SpendLimitSource: Send + Sync {
    /// What one may spend; nothing limits who is not known.
    fn limits(&self, payer: &str) -> SpendLimits;

    /// Everybody who has limits.
    fn limited(&self) -> Vec<(String, SpendLimits)>;
}

/// Nobody but the owner pays.
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

/// Whose limit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetScope {
    /// That of all together.
    Total,
    /// That of a key, by its id.
    Key(String),
}

impl BudgetScope {
    /// The word for it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Total => "total",
            Self::Key(_) => "key",
        }
    }

    /// The key, if it is one's.
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

/// No more may be spent for now. Wait, or let somebody allow more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} is spent: {spent} of {limit} for this {}; it goes on at {resets_at}, or with `antiphon \
     budget allow USD{}`",
    scope.whose(),
    window.as_str(),
    scope.key_id().map(|id| format!(" --key {id}")).unwrap_or_default()
)]
pub struct BudgetSpent {
    /// Whose limit was reached.
    pub scope: BudgetScope,
    /// Of which time.
    pub window: SpendWindow,
    /// The limit, with what was allowed beyond it.
    pub limit: Cost,
    /// What was spent.
    pub spent: Cost,
    /// When the next day or month begins.
    pub resets_at: DateTime<Utc>,
}

impl BudgetSpent {
    /// What the journal says of a task that waits for it.
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

    /// Whether that was said of the same limit, however much was spent then.
    pub(crate) fn is_told_by(&self, detail: Option<&Value>) -> bool {
        let Some(told) = detail else { return false };
        let own = self.detail();
        ["scope", "key_id", "period", "limit_nano_usd", "resets_at"]
            .iter()
            .all(|field| told.get(field) == own.get(field))
    }
}

/// Why the budget keeps a task from its model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BudgetRefusal {
    /// It waits.
    Spent(BudgetSpent),
    /// It cannot go on: nobody knows what its model costs.
    PriceUnknown {
        /// Which model.
        model: String,
    },
}

impl Budget {
    /// Whether anything limits what somebody pays for.
    pub(crate) fn holds_for(&self, payer: Option<&str>) -> bool {
        let own = |payer| !self.spend_limits.limits(payer).is_empty();
        !self.total.is_empty() || payer.is_some_and(own)
    }

    /// A model that a task may ask, of which nobody knows what it costs, where that matters.
    pub(crate) fn unpriced(&self, task: &TaskCreated, prices: &PriceTable) -> Option<String> {
        let unknown =
            |model: &&ModelRef| model.provider() != SCRIPTED && prices.price(model).is_none();
        let model = task.model.iter().chain(&task.fallbacks).find(unknown)?;
        self.holds_for(task.payer.as_deref()).then(|| model.to_string())
    }

    /// Whether more may be spent of one scope.
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

/// What was spent and allowed in the day and the month that it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sums {
    pub(crate) spent: PerWindow,
    pub(crate) raised: PerWindow,
    /// Answers this month of which nobody knows what they cost.
    pub(crate) unpriced_calls: u64,
}
