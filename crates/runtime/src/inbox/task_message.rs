//! Messages to a task that has not ended, labeled with their sender.
//!
//! A message with a key is sent once: a repeated call, also after the task has ended, returns the
//! same id and records nothing. A task that has ended, or whose inbox is full, accepts no new message. A message to a
//! task on a peer goes to the inbox there (`runner/peer_message.rs`).

use std::sync::Arc;

use antiphon_core::port::IdempotencyKey;
use antiphon_core::{
    ApprovalId, ApprovalReply, HandlingMode, Interaction, InteractionId, MessageQueued, Provenance,
    Sender, SilentIntents, TaskId, UserMessage, classify,
};

use crate::inbox::admission::{self, QueueOutcome};
use crate::inbox::derived_id;
use crate::orchestrator::Orchestrator;
use crate::orchestrator_error::OrchestratorError;
use crate::runner::peer_message;
use crate::services::Services;
use crate::task::control::approval;

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
    /// Where it came from, as the interface knows it.
    pub provenance: Provenance,
}

impl Orchestrator {
    /// Sends a message to a task that has not ended. The model reads it after the current step
    /// (`steer`) or after the current turn (`queue`). When this returns, the message is durable; an orchestrator that
    /// drains leaves it to the next one.
    pub async fn send_message(
        &self,
        task_id: &TaskId,
        message_to_task: TaskMessage,
    ) -> Result<InteractionId, OrchestratorError> {
        let TaskMessage { message, mode, from, key, provenance } = message_to_task;
        let services = self.services();
        let id = match &key {
            Some(key) => message_id(task_id, key),
            None => InteractionId::from(services.deps.ids.next()),
        };
        if key.is_some() && was_sent(services, task_id, id).await? {
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
        queue_message(services, task_id, queued.from_provenance(provenance)).await?;
        Ok(id)
    }

    /// Answers an approval with a message to a task, which is the task of the approval or one above it. The message counts
    /// as sent: sent again with its key, it changes nothing.
    pub async fn answer_with_message(
        &self,
        approval_id: &ApprovalId,
        reply: &ApprovalReply,
        by: &str,
        task_id: &TaskId,
        key: &IdempotencyKey,
    ) -> Result<(), OrchestratorError> {
        let key = message_key(task_id, message_id(task_id, key));
        approval::decide(self.services(), approval_id, reply, by, Some(&key)).await
    }

    /// Whether a message with this key was sent to the task, or answered an approval.
    pub async fn was_message_sent(
        &self,
        task_id: &TaskId,
        key: &IdempotencyKey,
    ) -> Result<bool, OrchestratorError> {
        was_sent(self.services(), task_id, message_id(task_id, key)).await
    }

    /// Checks that the payer may send a message: one that has spent its own budget sends nothing new.
    pub async fn check_budget_for_message(
        &self,
        payer: Option<&str>,
        task_id: &TaskId,
        message_to_task: &TaskMessage,
    ) -> Result<(), OrchestratorError> {
        match (self.check_own_budget(payer).await, &message_to_task.key) {
            (Err(OrchestratorError::Budget(_)), Some(key))
                if was_sent(self.services(), task_id, message_id(task_id, key)).await? =>
            {
                Ok(())
            }
            (afforded, _) => afforded,
        }
    }
}

/// The id of a message with a key: the same key gives the same id.
fn message_id(task_id: &TaskId, key: &IdempotencyKey) -> InteractionId {
    derived_id::of_name(&format!("{task_id}:{}", key.0))
}

/// Whether the message was recorded before.
async fn was_sent(
    services: &Services,
    task_id: &TaskId,
    id: InteractionId,
) -> Result<bool, OrchestratorError> {
    Ok(services.deps.journal.answered(&message_key(task_id, id)).await?.is_some())
}

/// Queues a message for a task that has not ended, once, and starts the task.
pub(crate) async fn queue_message(
    services: &Arc<Services>,
    task_id: &TaskId,
    queued: MessageQueued,
) -> Result<(), OrchestratorError> {
    let key = message_key(task_id, queued.id);
    let summary = services.reader.unfinished(task_id).await?;
    if summary.runs_on.peer.is_some() {
        return peer_message::send(services, task_id, &queued, key).await;
    }
    let key = Some(key);
    match admission::queue_for_task(services, task_id, queued, key).await? {
        QueueOutcome::Queued { .. } => Ok(()),
        QueueOutcome::Full(_) => Err(OrchestratorError::InboxFull { task_id: task_id.clone() }),
        QueueOutcome::Ended => services.reader.unfinished(task_id).await.map(drop),
    }
}

/// The key under which a message is recorded.
pub(crate) fn message_key(task_id: &TaskId, id: InteractionId) -> IdempotencyKey {
    IdempotencyKey(format!("said:{task_id}:{id}"))
}
