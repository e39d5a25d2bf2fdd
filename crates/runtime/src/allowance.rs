//! Asking what may be spent, and letting somebody spend more.
//!
//! What is allowed is an event like any other: durable before anybody goes on, the same after a restart.
//! Whoever waits for the budget is looked at then, and when the next day or month begins.

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

use crate::arrival::Arrival;
use crate::budget::{Budget, BudgetRefusal, BudgetScope, BudgetSpent};
use crate::inner::Inner;
use crate::limits::LimitReached;
use crate::orchestrator::Orchestrator;
use crate::orchestrator_error::OrchestratorError;
use crate::running;
use crate::state::TaskState;

/// Most that can be allowed at once: a million dollars.
pub const ALLOWED_NANO_USD_MAX: u64 = 1_000_000_000_000_000;

/// Tasks that are looked at when somebody allowed more.
const WAITING_MAX: NonZeroUsize = NonZeroUsize::new(1_000_000).unwrap();

/// More that may be spent, this day and this month.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowance {
    /// By whom; by all together when absent.
    pub payer: Option<String>,
    /// How much.
    pub by_nano_usd: u64,
    /// Who says so.
    pub by: String,
    /// What they say to it.
    pub comment: Option<String>,
    /// Makes a repeated order harmless.
    pub key: Option<IdempotencyKey>,
}

/// How the budget stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BudgetStatus {
    /// Of all together.
    pub total: ScopeStatus,
    /// Of keys that have limits, or that paid for something this month.
    pub keys: Vec<ScopeStatus>,
    /// Tasks that wait for it, the oldest first.
    pub waiting: Vec<TaskId>,
}

/// How one budget stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScopeStatus {
    /// Whose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_id: Option<String>,
    /// This day.
    pub day: WindowStatus,
    /// This month.
    pub month: WindowStatus,
    /// Answers this month of which nobody knows what they cost. They are not counted.
    pub unpriced_calls: u64,
}

/// How a budget stands in a day or a month.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WindowStatus {
    /// What was spent.
    pub spent_nano_usd: Cost,
    /// What may be, with what was allowed beyond it; anything when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_nano_usd: Option<Cost>,
    /// What was allowed beyond it.
    pub raised_nano_usd: Cost,
    /// When the next one begins.
    pub resets_at: DateTime<Utc>,
}

impl Orchestrator {
    /// Whether new work may begin that this one pays for. What was accepted under the key before is
    /// not refused now.
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

    /// Whether this one may send something to an agent: the owner pays for what comes of it, but who
    /// has spent their own budget sends nothing.
    pub async fn afford_sending(
        &self,
        payer: Option<&str>,
        arrival: &Arrival,
    ) -> Result<(), OrchestratorError> {
        self.afford(payer, crate::admission::key_of(arrival).as_ref()).await
    }

    /// Whether this one has not spent its own budget, whatever became of that of all.
    pub async fn afford_own(&self, payer: Option<&str>) -> Result<(), OrchestratorError> {
        Ok(self.inner.check_budget(payer, Scopes::Own).await??)
    }

    /// What was spent in these days.
    pub async fn spending(&self, days: DayRange) -> Result<Spending, OrchestratorError> {
        Ok(self.inner.world.journal.spending(days).await?)
    }

    /// How the budget stands.
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

    /// Tasks that wait for the budget, the oldest first.
    pub async fn waiting_for_budget(&self) -> Result<Vec<TaskId>, OrchestratorError> {
        self.inner.waiting_for_budget().await
    }

    /// Lets more be spent, this day and this month. When this returns, the journal has it, and whoever
    /// waited for it goes on.
    pub async fn allow(&self, allowance: Allowance) -> Result<BudgetStatus, OrchestratorError> {
        let inner = &self.inner;
        let limits = inner.limits_of(allowance.payer.as_deref());
        let refuse = |reason: &str| OrchestratorError::NoAllowance { reason: reason.to_owned() };
        if limits.is_empty() {
            return Err(refuse("there is no such budget: see `antiphon budget show`"));
        }
        if !(1..=ALLOWED_NANO_USD_MAX).contains(&allowance.by_nano_usd) {
            return Err(refuse("from 0.000000001 to 1000000 dollars can be allowed at once"));
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
            running::start(inner, &task_id);
        }
        self.budget().await
    }
}

/// Which limits are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scopes {
    /// That of all together, and that of whoever pays.
    All,
    /// That of whoever pays.
    Own,
}

impl Inner {
    /// Has what was spent at hand.
    /// Has it known what was spent, where anything hangs on it.
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
            // Whoever has to know has it read before.
            let sums = self.purse.sums(&scope, now).unwrap_or_default();
            Budget::check(&scope, limits, sums, now)?;
        }
        Ok(())
    }

    fn limits_of(&self, payer: Option<&str>) -> SpendLimits {
        payer.map_or(self.budget.total, |payer| self.budget.spend_limits.limits(payer))
    }

    /// Whether it is known what a task will cost, where that matters.
    pub(crate) fn check_price(&self, task: &TaskCreated) -> Result<(), LimitReached> {
        let unknown = self
            .uses_run_provider(task.runner.as_ref())
            .then(|| self.budget.unpriced(task, &self.world.prices))
            .flatten();
        unknown.map_or(Ok(()), |model| Err(LimitReached::PriceUnknown { model }))
    }

    /// Why the budget keeps a task from its model, if it does.
    pub(crate) fn kept_from_model(&self, task: &TaskCreated) -> Option<BudgetRefusal> {
        // What is paid elsewhere is for the one there to say.
        if !self.uses_run_provider(task.runner.as_ref()) {
            return None;
        }
        if let Err(spent) = self.affordable(task.payer.as_deref(), Scopes::All) {
            return Some(BudgetRefusal::Spent(spent));
        }
        let model = self.budget.unpriced(task, &self.world.prices)?;
        Some(BudgetRefusal::PriceUnknown { model })
    }

    /// Whether a task that waits for the budget need not wait any more.
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
