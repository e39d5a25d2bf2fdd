//! Messages to a task that has not ended, labeled with their sender.
//!
//! A message with a key is sent once: a repeated call, also after the task has ended, returns the
//! same id and records nothing. A task that has ended, or whose inbox is full, accepts no new message.

use antiphon_core::port::IdempotencyKey;
use antiphon_core::{
    HandlingMode, Interaction, InteractionId, MessageQueued, Sender, SilentIntents, TaskId,
    UserMessage, classify,
};

use crate::dispatch::pending_call;
use crate::orchestrator::Orchestrator;
use crate::orchestrator_error::OrchestratorError;
use crate::services::Inner;

/// A message to a task.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskMessage {
    /// Text and images.
    pub message: UserMessage,
    /// When the model may read it.
    pub mode: HandlingMode,
    /// Sender. Only messages of the user are shown to the model as the user's own words.
    pub from: Sender,
    /// Makes a repeated call harmless.
    pub key: Option<IdempotencyKey>,
}

impl Orchestrator {
    /// Sends a message to a task that has not ended. The model reads it after the current step
    /// (`steer`) or after the current turn (`queue`). When this returns, the message is durable.
    pub async fn say(
        &self,
        task_id: &TaskId,
        saying: TaskMessage,
    ) -> Result<InteractionId, OrchestratorError> {
        let TaskMessage { message, mode, from, key } = saying;
        let inner = self.inner();
        let id = match &key {
            Some(key) => named(task_id, key),
            None => InteractionId::from(inner.world.ids.next()),
        };
        if key.is_some() && inner.was_said(task_id, id).await? {
            return Ok(id);
        }
        let queued = match from {
            Sender::User => MessageQueued::of_user(id, mode, message),
            Sender::Peer(_) | Sender::External(_) => {
                let interaction = Interaction {
                    id,
                    from,
                    content: message.into(),
                    handling_mode: mode,
                    render_metadata: None,
                };
                MessageQueued::of(classify(interaction, &SilentIntents::default()))
            }
        };
        inner.queue(task_id, queued).await?;
        Ok(id)
    }

    /// Checks that the payer may send a message: one that has spent its own budget sends nothing new.
    pub async fn afford_saying(
        &self,
        payer: Option<&str>,
        task_id: &TaskId,
        saying: &TaskMessage,
    ) -> Result<(), OrchestratorError> {
        match (self.afford_own(payer).await, &saying.key) {
            (Err(OrchestratorError::Budget(_)), Some(key))
                if self.inner().was_said(task_id, named(task_id, key)).await? =>
            {
                Ok(())
            }
            (afforded, _) => afforded,
        }
    }
}

/// The id of a message with a key: the same key gives the same id.
fn named(task_id: &TaskId, key: &IdempotencyKey) -> InteractionId {
    pending_call::named_id(&format!("{task_id}:{}", key.0))
}

impl Inner {
    /// Whether the message was recorded before.
    async fn was_said(
        &self,
        task_id: &TaskId,
        id: InteractionId,
    ) -> Result<bool, OrchestratorError> {
        Ok(self.world.journal.answered(&said_as(task_id, id)).await?.is_some())
    }
}

/// The key under which a message is recorded.
pub(crate) fn said_as(task_id: &TaskId, id: InteractionId) -> IdempotencyKey {
    IdempotencyKey(format!("said:{task_id}:{id}"))
}
