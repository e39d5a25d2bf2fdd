//! What came of an order, kept under its key: whoever asks again hears the same, and nothing is done
//! a second time. What cannot be kept or read is not answered yet, and is asked for again.

use antiphon_core::port::{IdempotencyKey, KEY_BYTES_MAX};
use antiphon_core::{Command, TaskId};
use antiphon_file_drop::{Order, OrderError, OrderResult, OrderStatus};
use antiphon_runtime::Orchestrator;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::failed;

/// An order that leaves nothing behind under its own key, and is therefore kept.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Kept {
    action: &'static str,
    /// The agent or the task that it is about.
    about: String,
    key: String,
}

/// What is kept of an order that was carried out.
#[derive(Serialize, Deserialize)]
struct Outcome {
    status: OrderStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    task_id: Option<TaskId>,
}

impl Kept {
    /// `None` for what is written under its own key anyway.
    pub(super) fn of(order: &Order, key: &str) -> Option<Self> {
        let (action, about) = match order {
            Order::Control(Command::SpawnAgent { name, .. }) => ("spawn", name.clone()),
            Order::Control(Command::StopAgent { name }) => ("stop", name.clone()),
            Order::Control(Command::UpdateAgentContext { name, .. }) => ("update", name.clone()),
            Order::Cancel { task_id } => ("cancel", task_id.to_string()),
            Order::Send { .. } | Order::Invoke { .. } => return None,
        };
        let kept = Self { action, about, key: key.to_owned() };
        // Nobody has a name as long as that: it is refused.
        Some(kept).filter(|kept| kept.key().0.len() <= KEY_BYTES_MAX)
    }

    /// What came of it, if it was carried out before.
    pub(super) async fn before(
        &self,
        orchestrator: &Orchestrator,
    ) -> Result<Option<OrderResult>, OrderError> {
        let outcome = orchestrator.recorded(&self.key()).await.map_err(failed)?;
        outcome.map(done).transpose()
    }

    /// Keeps what came of it. The first that was kept counts.
    pub(super) async fn keep(
        &self,
        orchestrator: &Orchestrator,
        requester: &str,
        done_now: OrderResult,
    ) -> Result<OrderResult, OrderError> {
        let OrderResult { status, agent, task_id, interaction_id: _, result: _ } = done_now;
        let outcome =
            serde_json::to_value(Outcome { status, agent, task_id }).map_err(unreadable)?;
        let title = format!("{} {}, for {requester}", self.action, self.about);
        let kept = orchestrator.record(&title, outcome, self.key()).await.map_err(failed)?;
        done(kept)
    }

    /// Not the key of a stop itself, which is written into the task that it stops.
    fn key(&self) -> IdempotencyKey {
        let Self { action, about, key } = self;
        IdempotencyKey(format!("drop:done:{action}:{about}:{key}"))
    }
}

fn done(outcome: Value) -> Result<OrderResult, OrderError> {
    let Outcome { status, agent, task_id } = serde_json::from_value(outcome).map_err(unreadable)?;
    Ok(OrderResult { agent, task_id, ..OrderResult::new(status) })
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` hands over")]
fn unreadable(error: serde_json::Error) -> OrderError {
    OrderError::Unavailable { reason: format!("what was kept of it cannot be read: {error}") }
}
