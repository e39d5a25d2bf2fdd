//! Spend limits as interfaces see them: checks before new work, and reports.

use antiphon_core::port::IdempotencyKey;
use antiphon_core::{BudgetStatus, DayRange, Spending, TaskId};

use crate::budget::budget_service::Scopes;
use crate::inbox::admission;
use crate::inbox::arrival::Arrival;
use crate::orchestrator::Orchestrator;
use crate::orchestrator_error::OrchestratorError;

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
}
