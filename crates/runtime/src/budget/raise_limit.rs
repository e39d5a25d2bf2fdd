//! Raises spend limits.
//!
//! A raise is an event: durable before any task continues, and the same after a restart. Tasks that wait
//! for budget are started then, and when the next day or month begins.

use antiphon_core::port::IdempotencyKey;
use antiphon_core::{BudgetRaised, BudgetStatus, Cost};
use serde_json::json;

use crate::orchestrator::Orchestrator;
use crate::orchestrator_error::OrchestratorError;
use crate::task::schedule::supervise;

/// Largest amount that one call can allow: a million dollars.
pub const ALLOWED_NANO_USD_MAX: u64 = 1_000_000_000_000_000;

/// A raise of a spend limit for the current day and month.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitRaise {
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
    /// Raises a spend limit for the current day and month. When this returns, the raise is durable and
    /// waiting tasks are started.
    pub async fn allow(&self, raise: LimitRaise) -> Result<BudgetStatus, OrchestratorError> {
        let services = &self.services;
        let limits = services.budget.limits_of(raise.payer.as_deref());
        let refuse = |reason: &str| OrchestratorError::RaiseRefused { reason: reason.to_owned() };
        if limits.is_empty() {
            return Err(refuse("there is no such budget: see `antiphon budget show`"));
        }
        if !(1..=ALLOWED_NANO_USD_MAX).contains(&raise.by_nano_usd) {
            return Err(refuse("the amount must be from 0.000000001 to 1000000 dollars"));
        }
        let LimitRaise { payer, by_nano_usd, by, comment, key } = raise;
        let amount = Cost { nano_usd: by_nano_usd };
        services.budget.load().await?;
        services.budget.check_raise(payer.as_deref(), amount).map_err(|reason| refuse(&reason))?;
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
