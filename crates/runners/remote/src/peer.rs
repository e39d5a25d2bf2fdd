//! One peer, and what its refusals mean to the runner.

use antiphon_api::CreateTask;
use antiphon_client::{Client, ClientError, EventStream, RetryPolicy};
use antiphon_core::{Seq, TaskId, visible};

use crate::control::ControlCommand;

/// Characters of a peer's error that the runner repeats, at most.
const REASON_CHARS_MAX: usize = 300;

/// One other orchestrator.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    pub(crate) name: String,
    client: Client,
}

/// Why a peer did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PeerFailure {
    /// Try again.
    Unreachable(String),
    /// Give up.
    Refused(String),
}

impl From<ClientError> for PeerFailure {
    fn from(error: ClientError) -> Self {
        let reason = match &error {
            ClientError::Unauthorized => "it does not accept our token".to_owned(),
            ClientError::NoConnection { .. }
            | ClientError::Unreachable { .. }
            | ClientError::Refused { .. }
            | ClientError::Protocol { .. }
            | ClientError::StreamLost { .. } => {
                visible(&error.to_string()).chars().take(REASON_CHARS_MAX).collect()
            }
        };
        if error.is_transient() { Self::Unreachable(reason) } else { Self::Refused(reason) }
    }
}

impl Peer {
    pub(crate) fn new(name: String, client: Client) -> Self {
        Self { name, client }
    }

    /// Creates a task under a key: with the same key it is the same task.
    pub(crate) async fn create(
        &self,
        key: &TaskId,
        task: &CreateTask,
    ) -> Result<TaskId, PeerFailure> {
        Ok(self.client.create_task(task, Some(key.as_str())).await?.task_id)
    }

    /// Events of a task after `after`. The stream does not reconnect: the follower does, from its
    /// journal.
    pub(crate) fn events(&self, task_id: &TaskId, after: Seq) -> EventStream {
        self.client.task_events(task_id.clone(), after, RetryPolicy::NEVER)
    }

    /// Cancels a task. One that has ended stays ended.
    pub(crate) async fn cancel(&self, task_id: &TaskId) -> Result<(), PeerFailure> {
        settle(self.client.cancel_task(task_id).await.map(drop))
    }

    /// Forwards a command to a task.
    pub(crate) async fn control(
        &self,
        task_id: &TaskId,
        command: ControlCommand,
    ) -> Result<(), PeerFailure> {
        settle(match command {
            ControlCommand::Pause => self.client.pause_task(task_id).await.map(drop),
            ControlCommand::Resume => self.client.resume_task(task_id).await.map(drop),
        })
    }
}

/// A command that a task is past is as good as carried out.
fn settle(result: Result<(), ClientError>) -> Result<(), PeerFailure> {
    match result {
        Err(error) if error.is_conflict() => Ok(()),
        other => Ok(other?),
    }
}
