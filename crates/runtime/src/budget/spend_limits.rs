//! Spend limits: in total and for each API key, and the errors for reached ones.
//!
//! A limit interrupts nothing: it is checked before each model call. A task that it refuses is suspended
//! and loses nothing.

use std::num::NonZeroU64;
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
    /// What no raise exceeds.
    pub ceiling: Option<SpendCeiling>,
}

/// The most that all tasks together may spend, whatever a user allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpendCeiling {
    /// The limits. A window without one has no ceiling.
    pub limits: SpendLimits,
    /// Who set them and where, for errors.
    pub origin: String,
}

impl Default for Budget {
    fn default() -> Self {
        let (total, spend_limits) = (SpendLimits::default(), Arc::new(NoSpendLimits));
        Self { total, spend_limits, ceiling: None }
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
    "{} is spent: {spent} of {limit} for this {}; it resets at {resets_at}{}",
    scope.whose(),
    window.as_str(),
    self.advice()
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
    /// Who set the limit and where, if no user can raise it.
    pub ceiling: Option<String>,
}

impl BudgetSpent {
    fn advice(&self) -> String {
        match (&self.ceiling, self.scope.key_id()) {
            (Some(origin), _) => format!("; no user can raise it ({origin})"),
            (None, Some(id)) => format!(", or run `antiphon budget allow USD --key {id}`"),
            (None, None) => ", or run `antiphon budget allow USD`".to_owned(),
        }
    }

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

    /// Limits with what was added to them, at most up to the ceiling.
    pub(crate) fn raised(
        &self,
        scope: &BudgetScope,
        limits: SpendLimits,
        raised: PerWindow,
    ) -> SpendLimits {
        let raised = limits.raised(raised);
        let Some(ceiling) = self.ceiling_of(scope) else { return raised };
        let lower =
            |own: Option<NonZeroU64>, most: Option<NonZeroU64>| own.into_iter().chain(most).min();
        let most = ceiling.limits;
        SpendLimits {
            daily_nano_usd_max: lower(raised.daily_nano_usd_max, most.daily_nano_usd_max),
            monthly_nano_usd_max: lower(raised.monthly_nano_usd_max, most.monthly_nano_usd_max),
        }
    }

    /// The ceiling of a limit. What a key spends counts toward the total, which has one.
    pub(crate) fn ceiling_of(&self, scope: &BudgetScope) -> Option<&SpendCeiling> {
        self.ceiling.as_ref().filter(|_| *scope == BudgetScope::Total)
    }

    /// Checks one limit.
    pub(crate) fn check(
        &self,
        scope: &BudgetScope,
        limits: SpendLimits,
        sums: Sums,
        now: DateTime<Utc>,
    ) -> Result<(), BudgetSpent> {
        let checked = self.raised(scope, limits, sums.raised).check(sums.spent, now);
        checked.map_err(|SpendExceeded { window, limit, spent, resets_at }| {
            let ceiling = self.ceiling_of(scope);
            let ceiling = ceiling.filter(|ceiling| ceiling.limits.of(window) == Some(limit));
            BudgetSpent {
                scope: scope.clone(),
                window,
                limit,
                spent,
                resets_at,
                ceiling: ceiling.map(|ceiling| ceiling.origin.clone()),
            }
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
