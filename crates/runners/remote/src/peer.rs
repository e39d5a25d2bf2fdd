//! One peer, and what its refusals mean to the runner.

use antiphon_api::{CreateTask, SendMessage};
use antiphon_client::{Client, ClientError, EventStream, RetryPolicy};
use antiphon_core::port::{Clock, RemoteError, SystemClock};
use antiphon_core::{MessageQueued, Seq, TaskId, TaskSummary, visible};
use antiphon_followed_task::ControlCommand;
use serde_json::value::to_raw_value;

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

impl PeerFailure {
    /// The failure of a command to a peer of this name.
    pub(crate) fn of_peer(self, name: &str) -> RemoteError {
        match self {
            Self::Unreachable(reason) => {
                RemoteError::Unavailable { reason: format!("the peer `{name}`: {reason}") }
            }
            Self::Refused(reason) => {
                RemoteError::Refused { reason: format!("the peer `{name}`: {reason}") }
            }
        }
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
        self.client.own_task_events(task_id.clone(), after, RetryPolicy::NEVER)
    }

    /// Cancels a task. One that has ended stays ended, and one that is gone is as good as canceled.
    pub(crate) async fn cancel(&self, task_id: &TaskId) -> Result<(), PeerFailure> {
        match self.client.cancel_task(task_id).await {
            Err(error) if error.is_not_found() => Ok(()),
            canceled => settle(canceled.map(drop)),
        }
    }

    /// Cancels the task that was created under a key, or will be.
    pub(crate) async fn cancel_by_key(&self, key: &TaskId) -> Result<(), PeerFailure> {
        settle(self.client.cancel_task_by_key(key.as_str()).await.map(drop))
    }

    /// Puts a message into the inbox of a task, once for each id of a message.
    pub(crate) async fn send(
        &self,
        task_id: &TaskId,
        message: &MessageQueued,
    ) -> Result<(), RemoteError> {
        // The label of a sender that is not the user is part of the text.
        let text = to_raw_value(&message.user_message(SystemClock.now())).map_err(|error| {
            let reason = format!("the message cannot be written as JSON: {error}");
            RemoteError::Refused { reason }
        })?;
        let body = SendMessage { text, mode: message.mode, from: None };
        let sent = self.client.send_message(task_id, &body, Some(&message.id.to_string())).await;
        match sent {
            Ok(_) => Ok(()),
            Err(error) if error.is_conflict() => Err(RemoteError::Ended),
            Err(error) => Err(PeerFailure::from(error).of_peer(&self.name)),
        }
    }

    /// Whether it answers, and knows the task.
    pub(crate) async fn look(&self, task_id: &TaskId) -> Result<(), PeerFailure> {
        Ok(self.client.task(task_id).await.map(drop)?)
    }

    /// The tasks below a task.
    pub(crate) async fn below(&self, task_id: &TaskId) -> Result<Vec<TaskSummary>, PeerFailure> {
        let mut tasks = self.client.task_tree(task_id).await?.tasks;
        tasks.retain(|task| task.task_id != *task_id);
        Ok(tasks)
    }

    /// Forwards a command to a task.
    pub(crate) async fn control(
        &self,
        task_id: &TaskId,
        command: ControlCommand,
    ) -> Result<(), PeerFailure> {
        settle(match command {
            ControlCommand::Pause => self.client.pause_task(task_id).await.map(drop),
            ControlCommand::Interrupt => self.client.interrupt_task(task_id).await.map(drop),
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
