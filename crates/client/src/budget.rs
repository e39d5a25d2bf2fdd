//! The budget.

use antiphon_api::AllowSpending;
use antiphon_core::BudgetStatus;

use crate::client::{Client, Query};
use crate::error::ClientError;

impl Client {
    /// State of every spend limit.
    pub async fn budget(&self) -> Result<BudgetStatus, ClientError> {
        self.get(&["v1", "budget"], Query::NONE).await
    }

    /// Adds to the spend limits of this day and this month. Tasks that wait for them go on. With the same
    /// `key` the amount is added once.
    pub async fn allow_spending(
        &self,
        amount: &AllowSpending,
        key: Option<&str>,
    ) -> Result<BudgetStatus, ClientError> {
        self.post(&["v1", "budget", "allow"], amount, key).await
    }
}
