//! What was done once and is not done again: an order under the name that somebody gave it, and what
//! came of it.

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
    /// What came of an order of this name, if it was carried out.
    pub async fn recorded(&self, key: &IdempotencyKey) -> Result<Option<Value>, OrchestratorError> {
        self.inner().recorded(key).await
    }

    /// Keeps what came of an order, in a task of its own that has ended. The first that is kept under
    /// a name counts, and is returned.
    pub async fn record(
        &self,
        order: &str,
        outcome: Value,
        key: IdempotencyKey,
    ) -> Result<Value, OrchestratorError> {
        self.record_event(order, None, outcome, Some(key)).await
    }

    /// The same, with what else happened at that moment.
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
