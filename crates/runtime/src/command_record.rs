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
use crate::services::Services;

impl Orchestrator {
    /// The recorded outcome of the command with this key, if it was executed.
    pub async fn recorded(&self, key: &IdempotencyKey) -> Result<Option<Value>, OrchestratorError> {
        recorded(self.services(), key).await
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
        let services = self.services();
        let now = services.deps.clock.now();
        let created = TaskCreated::new(ORDERS, SessionId::from(services.deps.ids.next()));
        let done = StatusChanged {
            detail: Some(outcome.clone()),
            ..StatusChanged::new(TaskStatus::Completed)
        };
        let message = MessageAppended::new(UserMessage::text(order, now));
        let mut events: Vec<EventBody> = vec![created.into(), message.into()];
        events.extend(event);
        events.push(done.into());
        let append = Append {
            task_id: TaskId::from(services.deps.ids.next()),
            expected: Expected::NoTask,
            at: now,
            events,
            key: key.clone(),
        };
        let appended = services.append(append).await?;
        match key.filter(|_| appended.deduplicated) {
            Some(key) => Ok(recorded(services, &key).await?.unwrap_or(outcome)),
            None => Ok(outcome),
        }
    }
}

async fn recorded(
    services: &Services,
    key: &IdempotencyKey,
) -> Result<Option<Value>, OrchestratorError> {
    let Some(first) = services.deps.journal.answered(key).await? else { return Ok(None) };
    let task = services.reader.summary(&first.task_id).await?;
    if task.agent != ORDERS {
        return Ok(None);
    }
    let last = services.deps.journal.last_status(&first.task_id).await?;
    Ok(last.and_then(|last| last.detail))
}
