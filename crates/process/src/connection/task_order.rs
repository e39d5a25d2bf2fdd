//! When an order about a task takes effect: a message is read, a cancellation reaches a peer.

use antiphon_core::{TaskSummary, WaitingFor};
use antiphon_project::error::ProjectError;
use antiphon_project::peers_below;

use super::Connection;

/// When a task reads a message that was sent to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadingTime {
    /// Once it is resumed.
    WhenResumed,
    /// Once what it waits for has come.
    WhenContinued,
    /// Once its model answers, which is tried at once.
    WhenModelAnswers,
    /// After its current step.
    WhileWorking,
}

/// When the peers that canceled tasks run on get the cancellation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerCancellation {
    /// No task runs on a peer.
    NoPeers,
    /// Once a server runs here, before the tasks do anything more on these peers.
    WithServer(Vec<String>),
    /// At once, or as soon as these peers can be reached.
    AtOnce(Vec<String>),
}

impl Connection {
    /// When a task reads a message that is sent to it now.
    pub fn reading_time(&self, task: &TaskSummary) -> ReadingTime {
        match (self, task.waiting_for) {
            (Self::Local(_), _) | (Self::Server(..), Some(WaitingFor::Resume)) => {
                ReadingTime::WhenResumed
            }
            (
                Self::Server(..),
                Some(WaitingFor::Approval | WaitingFor::ToolResult | WaitingFor::Budget),
            ) => ReadingTime::WhenContinued,
            (Self::Server(..), Some(WaitingFor::Model)) => ReadingTime::WhenModelAnswers,
            (Self::Server(..), Some(WaitingFor::Peer | WaitingFor::Storage) | None) => {
                ReadingTime::WhileWorking
            }
        }
    }

    /// When the peers that a task and the unfinished tasks below it run on get a cancellation.
    pub async fn peer_cancellation(
        &self,
        task: &TaskSummary,
    ) -> Result<PeerCancellation, ProjectError> {
        let peers = peers_below(self.reader(), &task.task_id).await?;
        Ok(match (self, peers.as_slice()) {
            (_, []) => PeerCancellation::NoPeers,
            (Self::Local(_), _) => PeerCancellation::WithServer(peers),
            (Self::Server(..), _) => PeerCancellation::AtOnce(peers),
        })
    }
}
