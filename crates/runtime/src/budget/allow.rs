//! Checks spend limits, and raises them.
//!
//! A raise is an event: durable before any task continues, and the same after a restart. Tasks that wait
//! for budget are started then, and when the next day or month begins.

use std::num::NonZeroUsize;
use std::sync::Arc;

use antiphon_core::port::{IdempotencyKey, TaskFilter, TaskQuery, TaskSelector};
use antiphon_core::{
    BudgetRaised, Cost, DayRange, SpendLimits, SpendWindow, Spending, TaskCreated, TaskId,
    TaskStatus, WaitingFor,
};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::budget::spend_limits::{Budget, BudgetRefusal, BudgetScope, BudgetSpent};
use crate::inbox::arrival::Arrival;
use crate::orchestrator::Orchestrator;
use crate::orchestrator_error::OrchestratorError;
use crate::services::Inner;
use crate::task::limits::LimitReached;
use crate::task::run_slots;
use crate::task::state::TaskState;

/// Largest amount that one call can allow: a million dollars.
pub const ALLOWED_NANO_USD_MAX: u64 = 1_000_000_000_000_000;

/// Maximum number of waiting tasks that a raise starts.
const WAITING_MAX: NonZeroUsize = NonZeroUsize::new(1_000_000).unwrap();

/// A raise of a spend limit for the current day and month.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowance {
    /// Id of the API key; the total limit when absent.
    pub payer: Option<String>,
    /// Amount, in billionths of a US dollar.
    pub by_nano_usd: u64,
    /// Name of the user who allows it.
    pub by: String,
    /// Comment for the record.
    pub comment: Option<String>,
    /// Makes a repeated call harmless.
    pub key: Option<IdempotencyKey>,
}

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

impl Orchestrator {
    /// Checks that `payer` may start new work. A request with a known `key` is not refused: it was
    /// accepted before.
    pub async fn afford(
        &self,
        payer: Option<&str>,
        key: Option<&IdempotencyKey>,
    ) -> Result<(), OrchestratorError> {
        let Err(spent) = self.inner.check_budget(payer, Scopes::All).await? else { return Ok(()) };
        match key {
            Some(key) if self.inner.world.journal.answered(key).await?.is_some() => Ok(()),
            Some(_) | None => Err(spent.into()),
        }
    }

    /// Checks that `payer` may send something to an agent. The owner pays for the agent, but a payer that
    /// has spent its own budget sends nothing.
    pub async fn afford_sending(
        &self,
        payer: Option<&str>,
        arrival: &Arrival,
    ) -> Result<(), OrchestratorError> {
        self.afford(payer, crate::inbox::admission::key_of(arrival).as_ref()).await
    }

    /// Checks the limit of `payer` alone, not the total.
    pub async fn afford_own(&self, payer: Option<&str>) -> Result<(), OrchestratorError> {
        Ok(self.inner.check_budget(payer, Scopes::Own).await??)
    }

    /// What was spent on these days.
    pub async fn spending(&self, days: DayRange) -> Result<Spending, OrchestratorError> {
        Ok(self.inner.world.journal.spending(days).await?)
    }

    /// Status of all spend limits.
    pub async fn budget(&self) -> Result<BudgetStatus, OrchestratorError> {
        let inner = &self.inner;
        inner.settle_every_purse().await?;
        let now = inner.world.clock.now();
        let mut spend_limits: Vec<BudgetScope> = inner.purse.scopes(now);
        spend_limits.extend(
            inner.budget.spend_limits.limited().into_iter().map(|(id, _)| BudgetScope::Key(id)),
        );
        spend_limits.retain(|scope| *scope != BudgetScope::Total);
        spend_limits.sort();
        spend_limits.dedup();
        Ok(BudgetStatus {
            total: inner.standing_of(&BudgetScope::Total, now),
            keys: spend_limits.iter().map(|scope| inner.standing_of(scope, now)).collect(),
            waiting: inner.waiting_for_budget().await?,
        })
    }

    /// Ids of the tasks that wait for budget, oldest first.
    pub async fn waiting_for_budget(&self) -> Result<Vec<TaskId>, OrchestratorError> {
        self.inner.waiting_for_budget().await
    }

    /// Raises a spend limit for the current day and month. When this returns, the raise is durable and
    /// waiting tasks are started.
    pub async fn allow(&self, allowance: Allowance) -> Result<BudgetStatus, OrchestratorError> {
        let inner = &self.inner;
        let limits = inner.limits_of(allowance.payer.as_deref());
        let refuse = |reason: &str| OrchestratorError::NoAllowance { reason: reason.to_owned() };
        if limits.is_empty() {
            return Err(refuse("there is no such budget: see `antiphon budget show`"));
        }
        if !(1..=ALLOWED_NANO_USD_MAX).contains(&allowance.by_nano_usd) {
            return Err(refuse("the amount must be from 0.000000001 to 1000000 dollars"));
        }
        let Allowance { payer, by_nano_usd, by, comment, key } = allowance;
        let amount = Cost { nano_usd: by_nano_usd };
        let order = match &payer {
            None => format!("allow {amount} more"),
            Some(id) => format!("allow key {id} {amount} more"),
        };
        let outcome = json!({ "allowed_nano_usd": amount, "key_id": payer });
        let raised = BudgetRaised { nano_usd: by_nano_usd, payer, by, comment };
        self.record_event(&order, Some(raised.into()), outcome, key).await?;
        for task_id in inner.waiting_for_budget().await? {
            run_slots::start(inner, &task_id);
        }
        self.budget().await
    }
}

/// Which limits are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scopes {
    /// The total limit and that of the payer.
    All,
    /// The limit of the payer.
    Own,
}

impl Inner {
    /// Reads what was spent, if a limit applies to `payer`.
    pub(crate) async fn settle_purse(&self, payer: Option<&str>) -> Result<(), OrchestratorError> {
        if self.budget.holds_for(payer) { self.settle_every_purse().await } else { Ok(()) }
    }

    async fn settle_every_purse(&self) -> Result<(), OrchestratorError> {
        let world = &self.world;
        Ok(self.purse.ready(&*world.journal, &world.prices, world.clock.now()).await?)
    }

    async fn check_budget(
        &self,
        payer: Option<&str>,
        which: Scopes,
    ) -> Result<Result<(), BudgetSpent>, OrchestratorError> {
        self.settle_purse(payer).await?;
        Ok(self.affordable(payer, which))
    }

    fn affordable(&self, payer: Option<&str>, which: Scopes) -> Result<(), BudgetSpent> {
        let now = self.world.clock.now();
        let total = (which == Scopes::All).then_some(BudgetScope::Total);
        let own = payer.map(|payer| BudgetScope::Key(payer.to_owned()));
        for scope in [total, own].into_iter().flatten() {
            let limits = self.limits_of(scope.key_id());
            if limits.is_empty() {
                continue;
            }
            // Callers that need exact sums call `settle_purse` first.
            let sums = self.purse.sums(&scope, now).unwrap_or_default();
            Budget::check(&scope, limits, sums, now)?;
        }
        Ok(())
    }

    fn limits_of(&self, payer: Option<&str>) -> SpendLimits {
        payer.map_or(self.budget.total, |payer| self.budget.spend_limits.limits(payer))
    }

    /// Checks that the price of a task's models is known, where limits apply.
    pub(crate) fn check_price(&self, task: &TaskCreated) -> Result<(), LimitReached> {
        let unknown = self
            .asks_here(task.runner.as_ref())
            .then(|| self.budget.unpriced(task, &self.world.prices))
            .flatten();
        unknown.map_or(Ok(()), |model| Err(LimitReached::PriceUnknown { model }))
    }

    /// Why the budget refuses a model call of a task, if it does.
    pub(crate) fn kept_from_model(&self, task: &TaskCreated) -> Option<BudgetRefusal> {
        // Calls that another orchestrator pays for are checked there.
        if !self.asks_here(task.runner.as_ref()) {
            return None;
        }
        if let Err(spent) = self.affordable(task.payer.as_deref(), Scopes::All) {
            return Some(BudgetRefusal::Spent(spent));
        }
        let model = self.budget.unpriced(task, &self.world.prices)?;
        Some(BudgetRefusal::PriceUnknown { model })
    }

    /// Checks whether a task that waits for budget may continue.
    pub(crate) async fn check_wait(&self, state: &TaskState) -> Result<(), OrchestratorError> {
        if state.waiting_for != Some(WaitingFor::Budget) {
            return Ok(());
        }
        self.settle_purse(state.created.payer.as_deref()).await?;
        match self.kept_from_model(&state.created) {
            Some(BudgetRefusal::Spent(spent)) => Err(spent.into()),
            Some(BudgetRefusal::PriceUnknown { .. }) | None => Ok(()),
        }
    }

    async fn waiting_for_budget(&self) -> Result<Vec<TaskId>, OrchestratorError> {
        let statuses = vec![TaskStatus::InputRequired];
        let which = TaskSelector::Matching(TaskFilter { statuses, ..TaskFilter::default() });
        let mut found = self.world.journal.tasks(TaskQuery { which, limit: WAITING_MAX }).await?;
        found.retain(|task| task.waiting_for == Some(WaitingFor::Budget));
        Ok(found.into_iter().rev().map(|task| task.task_id).collect())
    }

    fn standing_of(self: &Arc<Self>, scope: &BudgetScope, now: DateTime<Utc>) -> ScopeStatus {
        let limits = self.limits_of(scope.key_id());
        let sums = self.purse.sums(scope, now).unwrap_or_default();
        let raised = limits.raised(sums.raised);
        let window = |window: SpendWindow| WindowStatus {
            spent_nano_usd: sums.spent.of(window),
            limit_nano_usd: raised.of(window),
            raised_nano_usd: sums.raised.of(window),
            resets_at: window.ends(now),
        };
        ScopeStatus {
            key_id: scope.key_id().map(str::to_owned),
            day: window(SpendWindow::Day),
            month: window(SpendWindow::Month),
            unpriced_calls: sums.unpriced_calls,
        }
    }
}
