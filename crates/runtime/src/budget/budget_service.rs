//! Checks spend limits before each model call and before new work.
//!
//! A check reads nothing: call [`BudgetService::ensure_loaded`] first where exact sums matter.

use std::num::NonZeroUsize;
use std::sync::Arc;

use antiphon_core::port::{TaskFilter, TaskQuery, TaskSelector};
use antiphon_core::{Cost, SpendLimits, SpendWindow, TaskCreated, TaskId, TaskStatus, WaitingFor};
use chrono::{DateTime, Utc};

use crate::budget::spend_cache::SpendCache;
use crate::budget::spend_limits::{Budget, BudgetRefusal, BudgetScope, BudgetSpent};
use crate::deps::RuntimeDeps;
use crate::orchestrator_error::OrchestratorError;
use crate::task::limits::LimitReached;
use crate::task::state::TaskState;
use antiphon_core::{BudgetStatus, ScopeStatus, WindowStatus};

/// Maximum number of waiting tasks that are listed.
const WAITING_MAX: NonZeroUsize = NonZeroUsize::new(1_000_000).unwrap();

/// The spend limits, and what was spent of them.
pub(crate) struct BudgetService {
    pub(crate) deps: Arc<RuntimeDeps>,
    pub(crate) limits: Budget,
    pub(crate) spend_cache: Arc<SpendCache>,
}

/// Which limits are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scopes {
    /// The total limit and that of the payer.
    All,
    /// The limit of the payer.
    Own,
}

impl BudgetService {
    /// Reads what was spent, if a limit applies to `payer`.
    pub(crate) async fn ensure_loaded(&self, payer: Option<&str>) -> Result<(), OrchestratorError> {
        if self.limits.applies_to(payer) { self.load().await } else { Ok(()) }
    }

    /// Reads what was spent, unless it is known.
    pub(crate) async fn load(&self) -> Result<(), OrchestratorError> {
        let deps = &self.deps;
        Ok(self.spend_cache.ensure_loaded(&*deps.journal, &deps.prices, deps.clock.now()).await?)
    }

    pub(crate) async fn check(
        &self,
        payer: Option<&str>,
        which: Scopes,
    ) -> Result<Result<(), BudgetSpent>, OrchestratorError> {
        self.ensure_loaded(payer).await?;
        Ok(self.affordable(payer, which))
    }

    /// Status of all spend limits.
    pub(crate) async fn status(&self) -> Result<BudgetStatus, OrchestratorError> {
        self.load().await?;
        let now = self.deps.clock.now();
        let mut keys: Vec<BudgetScope> = self.spend_cache.scopes(now);
        keys.extend(
            self.limits.spend_limits.limited().into_iter().map(|(id, _)| BudgetScope::Key(id)),
        );
        keys.retain(|scope| *scope != BudgetScope::Total);
        keys.sort();
        keys.dedup();
        Ok(BudgetStatus {
            total: self.scope_status(&BudgetScope::Total, now),
            keys: keys.iter().map(|scope| self.scope_status(scope, now)).collect(),
            waiting: self.waiting_tasks().await?,
        })
    }

    fn affordable(&self, payer: Option<&str>, which: Scopes) -> Result<(), BudgetSpent> {
        let now = self.deps.clock.now();
        let total = (which == Scopes::All).then_some(BudgetScope::Total);
        let own = payer.map(|payer| BudgetScope::Key(payer.to_owned()));
        for scope in [total, own].into_iter().flatten() {
            let limits = self.limits_of(scope.key_id());
            if limits.is_empty() {
                continue;
            }
            // Callers that need exact sums call `ensure_loaded` first.
            let sums = self.spend_cache.sums(&scope, now).unwrap_or_default();
            self.limits.check(&scope, limits, sums, now)?;
        }
        Ok(())
    }

    pub(crate) fn limits_of(&self, payer: Option<&str>) -> SpendLimits {
        payer.map_or(self.limits.total, |payer| self.limits.spend_limits.limits(payer))
    }

    /// Checks that the price of a task's models is known, where limits apply.
    pub(crate) fn check_price(&self, task: &TaskCreated) -> Result<(), LimitReached> {
        let unknown = self
            .deps
            .uses_run_provider(task.runner.as_ref())
            .then(|| self.limits.model_without_price(task, &self.deps.prices))
            .flatten();
        unknown.map_or(Ok(()), |model| Err(LimitReached::PriceUnknown { model }))
    }

    /// Why the budget refuses a model call of a task, if it does.
    pub(crate) fn model_refusal(&self, task: &TaskCreated) -> Option<BudgetRefusal> {
        // Calls that another orchestrator pays for are checked there.
        if !self.deps.uses_run_provider(task.runner.as_ref()) {
            return None;
        }
        if let Err(spent) = self.affordable(task.payer.as_deref(), Scopes::All) {
            return Some(BudgetRefusal::Spent(spent));
        }
        let model = self.limits.model_without_price(task, &self.deps.prices)?;
        Some(BudgetRefusal::PriceUnknown { model })
    }

    /// Checks whether a task that waits for budget may continue.
    pub(crate) async fn check_wait(&self, state: &TaskState) -> Result<(), OrchestratorError> {
        if state.waiting_for != Some(WaitingFor::Budget) {
            return Ok(());
        }
        self.ensure_loaded(state.created.payer.as_deref()).await?;
        match self.model_refusal(&state.created) {
            Some(BudgetRefusal::Spent(spent)) => Err(spent.into()),
            Some(BudgetRefusal::PriceUnknown { .. }) | None => Ok(()),
        }
    }

    /// Checks that the limit of `payer` can be raised by `amount`. The error says how far it can.
    pub(crate) fn check_raise(&self, payer: Option<&str>, amount: Cost) -> Result<(), String> {
        let scope = payer.map_or(BudgetScope::Total, |payer| BudgetScope::Key(payer.to_owned()));
        let Some(ceiling) = self.limits.ceiling_of(&scope) else { return Ok(()) };
        let now = self.deps.clock.now();
        let sums = self.spend_cache.sums(&scope, now).unwrap_or_default();
        let limits = self.limits.raised(&scope, self.limits_of(payer), sums.raised);
        let rooms = SpendWindow::ALL.iter().filter_map(|window| {
            let (limit, most) = (limits.of(*window)?, ceiling.limits.of(*window));
            let room = most.map_or(u64::MAX, |most| most.nano_usd.saturating_sub(limit.nano_usd));
            (room > 0).then_some(Cost { nano_usd: room })
        });
        let origin = &ceiling.origin;
        match rooms.min() {
            None => Err(format!("the budget is as large as it may be ({origin})")),
            Some(room) if amount > room => {
                Err(format!("the budget can be raised by {room} at most ({origin})"))
            }
            Some(_) => Ok(()),
        }
    }

    pub(crate) async fn waiting_tasks(&self) -> Result<Vec<TaskId>, OrchestratorError> {
        let statuses = vec![TaskStatus::InputRequired];
        let which = TaskSelector::Matching(TaskFilter { statuses, ..TaskFilter::default() });
        let mut found = self.deps.journal.tasks(TaskQuery { which, limit: WAITING_MAX }).await?;
        found.retain(|task| task.waiting_for == Some(WaitingFor::Budget));
        Ok(found.into_iter().rev().map(|task| task.task_id).collect())
    }

    fn scope_status(&self, scope: &BudgetScope, now: DateTime<Utc>) -> ScopeStatus {
        let limits = self.limits_of(scope.key_id());
        let sums = self.spend_cache.sums(scope, now).unwrap_or_default();
        let raised = self.limits.raised(scope, limits, sums.raised);
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
