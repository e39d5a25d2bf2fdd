//! The outcome of an order, recorded under its key: a repeated order gets the same response and has no
//! second effect. An outcome that cannot be recorded or read is not answered yet; the file drop tries again.

use antiphon_core::port::{IdempotencyKey, KEY_BYTES_MAX};
use antiphon_core::{Command, Order, OrderError, OrderResult, OrderStatus, TaskId};
use antiphon_runtime::Orchestrator;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::failed;

/// An order whose effect carries no key of its own, so its outcome is recorded.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RecordedOrder {
    action: &'static str,
    /// Name of the agent, or id of the task.
    target: String,
    key: String,
}

/// The recorded part of a response.
#[derive(Serialize, Deserialize)]
struct Outcome {
    status: OrderStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    task_id: Option<TaskId>,
}

impl RecordedOrder {
    /// `None` for an order whose effect is recorded under its own key.
    pub(super) fn of(order: &Order, key: &str) -> Option<Self> {
        let (action, target) = match order {
            Order::Control(Command::SpawnAgent { name, .. }) => ("spawn", name.clone()),
            Order::Control(Command::StopAgent { name }) => ("stop", name.clone()),
            Order::Control(Command::UpdateAgentContext { name, .. }) => ("update", name.clone()),
            Order::Cancel { task_id } => ("cancel", task_id.to_string()),
            // The same answer a second time changes nothing.
            Order::Send { .. } | Order::Invoke { .. } | Order::Respond { .. } => return None,
        };
        let order = Self { action, target, key: key.to_owned() };
        // A longer name is not a valid name: the order itself is refused.
        Some(order).filter(|order| order.key().0.len() <= KEY_BYTES_MAX)
    }

    /// The recorded outcome; `None` when the order was not carried out yet.
    pub(super) async fn outcome(
        &self,
        orchestrator: &Orchestrator,
    ) -> Result<Option<OrderResult>, OrderError> {
        let outcome = orchestrator.recorded(&self.key()).await.map_err(failed)?;
        outcome.map(response).transpose()
    }

    /// Records the outcome. When another is recorded already, that one is returned.
    pub(super) async fn record(
        &self,
        orchestrator: &Orchestrator,
        requester: &str,
        done: OrderResult,
    ) -> Result<OrderResult, OrderError> {
        let OrderResult { status, agent, task_id, interaction_id: _, result: _ } = done;
        let outcome =
            serde_json::to_value(Outcome { status, agent, task_id }).map_err(unreadable)?;
        let title = format!("{} {}, for {requester}", self.action, self.target);
        let recorded = orchestrator.record(&title, outcome, self.key()).await.map_err(failed)?;
        response(recorded)
    }

    /// Differs from the key of a stop, which is recorded in the stopped task.
    fn key(&self) -> IdempotencyKey {
        let Self { action, target, key } = self;
        IdempotencyKey(format!("drop:done:{action}:{target}:{key}"))
    }
}

fn response(outcome: Value) -> Result<OrderResult, OrderError> {
    let Outcome { status, agent, task_id } = serde_json::from_value(outcome).map_err(unreadable)?;
    Ok(OrderResult { agent, task_id, ..OrderResult::new(status) })
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` passes the error by value")]
fn unreadable(error: serde_json::Error) -> OrderError {
    OrderError::Unavailable { reason: format!("the recorded outcome cannot be read: {error}") }
}
