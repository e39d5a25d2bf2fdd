//! Checks spend limits, and raises them.
//!
//! A raise is an event: durable before any task continues, and the same after a restart. Tasks that wait
//! for budget are started then, and when the next day or month begins.

use antiphon_core::port::IdempotencyKey;
use antiphon_core::{BudgetRaised, Cost, DayRange, Spending, TaskId};
use serde_json::json;

use crate::budget::budget_service::Scopes;
use crate::inbox::admission;
use crate::inbox::arrival::Arrival;
use crate::orchestrator::Orchestrator;
use crate::orchestrator_error::OrchestratorError;
use crate::task::schedule::supervise;
use antiphon_core::BudgetStatus;

/// Largest amount that one call can allow: a million dollars.
pub const ALLOWED_NANO_USD_MAX: u64 = 1_000_000_000_000_000;

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

impl Orchestrator {
    /// Checks that `payer` may start new work. A request with a known `key` is not refused: it was
    /// accepted before.
    pub async fn check_budget(
        &self,
        payer: Option<&str>,
        key: Option<&IdempotencyKey>,
    ) -> Result<(), OrchestratorError> {
        let Err(spent) = self.services.budget.check(payer, Scopes::All).await? else {
            return Ok(());
        };
        match key {
            Some(key) if self.services.deps.journal.answered(key).await?.is_some() => Ok(()),
            Some(_) | None => Err(spent.into()),
        }
    }

    /// Checks that `payer` may send something to an agent. The owner pays for the agent, but a payer that
    /// has spent its own budget sends nothing.
    pub async fn check_budget_for_arrival(
        &self,
        payer: Option<&str>,
        arrival: &Arrival,
    ) -> Result<(), OrchestratorError> {
        self.check_budget(payer, admission::key_of(arrival).as_ref()).await
    }

    /// Checks the limit of `payer` alone, not the total.
    pub async fn check_own_budget(&self, payer: Option<&str>) -> Result<(), OrchestratorError> {
        Ok(self.services.budget.check(payer, Scopes::Own).await??)
    }

    /// What was spent on these days.
    pub async fn spending(&self, days: DayRange) -> Result<Spending, OrchestratorError> {
        Ok(self.services.deps.journal.spending(days).await?)
    }

    /// Status of all spend limits.
    pub async fn budget(&self) -> Result<BudgetStatus, OrchestratorError> {
        self.services.budget.status().await
    }

    /// Ids of the tasks that wait for budget, oldest first.
    pub async fn waiting_for_budget(&self) -> Result<Vec<TaskId>, OrchestratorError> {
        self.services.budget.waiting_tasks().await
    }

    /// Raises a spend limit for the current day and month. When this returns, the raise is durable and
    /// waiting tasks are started.
    pub async fn allow(&self, allowance: Allowance) -> Result<BudgetStatus, OrchestratorError> {
        let services = &self.services;
        let limits = services.budget.limits_of(allowance.payer.as_deref());
        let refuse =
            |reason: &str| OrchestratorError::AllowanceRefused { reason: reason.to_owned() };
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
        for task_id in services.budget.waiting_tasks().await? {
            supervise::start(services, &task_id);
        }
        self.budget().await
    }
}
