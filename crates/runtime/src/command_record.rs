//! Outcomes of commands, recorded under their idempotency keys so that a repeated command has the
//! same outcome.

use antiphon_core::port::{Append, Expected, IdempotencyKey};
use antiphon_core::{
    EventBody, MessageAppended, ORDERS, SessionId, StatusChanged, TaskCreated, TaskId, TaskStatus,
    UserMessage,
};
use serde_json::Value;

use crate::orchestrator::Orchestrator;
use crate::orchestrator_error::OrchestratorError;
use crate::services::Inner;

impl Orchestrator {
    /// The recorded outcome of the command with this key, if it was executed.
    pub async fn recorded(&self, key: &IdempotencyKey) -> Result<Option<Value>, OrchestratorError> {
        self.inner().recorded(key).await
    }

    /// Records the outcome of a command in a completed task of its own. The first outcome under a key
    /// counts and is returned.
    pub async fn record(
        &self,
        order: &str,
        outcome: Value,
        key: IdempotencyKey,
    ) -> Result<Value, OrchestratorError> {
        self.record_event(order, None, outcome, Some(key)).await
    }

    /// Records an event together with the outcome.
    pub(crate) async fn record_event(
        &self,
        order: &str,
        event: Option<EventBody>,
        outcome: Value,
        key: Option<IdempotencyKey>,
    ) -> Result<Value, OrchestratorError> {
        let inner = self.inner();
        let now = inner.world.clock.now();
        let created = TaskCreated::new(ORDERS, SessionId::from(inner.world.ids.next()));
        let done = StatusChanged {
            detail: Some(outcome.clone()),
            ..StatusChanged::new(TaskStatus::Completed)
        };
        let said = MessageAppended::new(UserMessage::text(order, now));
        let mut events: Vec<EventBody> = vec![created.into(), said.into()];
        events.extend(event);
        events.push(done.into());
        let append = Append {
            task_id: TaskId::from(inner.world.ids.next()),
            expected: Expected::NoTask,
            at: now,
            events,
            key: key.clone(),
        };
        let appended = inner.append(append).await?;
        match key.filter(|_| appended.deduplicated) {
            Some(key) => Ok(inner.recorded(&key).await?.unwrap_or(outcome)),
            None => Ok(outcome),
        }
    }
}

impl Inner {
    async fn recorded(&self, key: &IdempotencyKey) -> Result<Option<Value>, OrchestratorError> {
        let Some(first) = self.world.journal.answered(key).await? else { return Ok(None) };
        let state = self.load(&first.task_id).await?;
        Ok(state.detail.filter(|_| state.created.agent == ORDERS))
    }
}
