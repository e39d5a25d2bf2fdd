//! Something said to a task that has not ended, labeled with who says it.
//!
//! What is said under a key is said once: again, also when its task has ended since, it has the same
//! id and nothing is written. A task that has ended, or whose inbox is full, hears nothing else.

use antiphon_core::port::IdempotencyKey;
use antiphon_core::{
    HandlingMode, Interaction, InteractionId, MessageQueued, Sender, SilentIntents, TaskId,
    UserMessage, classify,
};

use crate::dispatch::pending_call;
use crate::orchestrator::Orchestrator;
use crate::orchestrator_error::OrchestratorError;
use crate::services::Inner;

/// Something said to a task.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskMessage {
    /// What.
    pub message: UserMessage,
    /// When it may reach the model.
    pub mode: HandlingMode,
    /// Who says it. Only the user's own words are read as such.
    pub from: Sender,
    /// Makes a repeated saying harmless.
    pub key: Option<IdempotencyKey>,
}

impl Orchestrator {
    /// Says something to a task that has not ended. It hears it at the next safe point (`steer`) or
    /// when its turn is over (`queue`). When this returns, the journal has it.
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

    /// Whether this one may say something to a task: who has spent their own budget says nothing new.
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

/// What is said to a task under a key goes by one name, however often it is said.
fn named(task_id: &TaskId, key: &IdempotencyKey) -> InteractionId {
    pending_call::named_id(&format!("{task_id}:{}", key.0))
}

impl Inner {
    /// Whether this was said to a task before.
    async fn was_said(
        &self,
        task_id: &TaskId,
        id: InteractionId,
    ) -> Result<bool, OrchestratorError> {
        Ok(self.world.journal.answered(&said_as(task_id, id)).await?.is_some())
    }
}

/// The key under which something is said to a task.
pub(crate) fn said_as(task_id: &TaskId, id: InteractionId) -> IdempotencyKey {
    IdempotencyKey(format!("said:{task_id}:{id}"))
}
