//! The wait of a task whose budget is used up.

use antiphon_core::{StatusChanged, TaskStatus, WaitingFor};
use chrono::{DateTime, Utc};

use crate::budget::spend_limits::{BudgetRefusal, BudgetSpent};
use crate::task::decide::Action;
use crate::task::step::TaskRun;

impl TaskRun {
    /// When a task that waits for budget is checked again. `Err` means at once: more may have been
    /// allowed since the decision, before the wait was recorded.
    pub(super) fn next_budget_check(&self) -> Result<Option<DateTime<Utc>>, ()> {
        if self.state.waiting_for != Some(WaitingFor::Budget) || self.is_dispatched_elsewhere() {
            return Ok(None);
        }
        match self.services.budget.model_refusal(&self.state.created) {
            Some(BudgetRefusal::Spent(spent)) => Ok(Some(spent.resets_at)),
            Some(BudgetRefusal::PriceUnknown { .. }) | None => Err(()),
        }
    }

    /// Ends the wait for budget when the task calls its model.
    pub(super) fn end_budget_wait(&mut self, action: &Action) {
        let waits = self.state.waiting_for == Some(WaitingFor::Budget);
        if waits
            && matches!(action, Action::AskModel | Action::Compact)
            && !self.is_dispatched_elsewhere()
        {
            self.push(StatusChanged::new(TaskStatus::Running));
        }
    }

    /// Suspends the task until more may be spent.
    pub(super) fn wait_for_budget(&mut self, spent: &BudgetSpent) {
        let status = StatusChanged::new(TaskStatus::InputRequired);
        let (detail, waiting_for) = (Some(spent.detail()), Some(WaitingFor::Budget));
        self.push(StatusChanged { detail, waiting_for, ..status });
    }
}
