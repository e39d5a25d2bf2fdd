//! The runner: finds the peer and follows the task there.

use antiphon_client::RetryPolicy;
use antiphon_core::MessageQueued;
use antiphon_core::port::{RemoteError, RemoteTask, Runner, RunnerError, RunnerTask};
use antiphon_followed_task::LocalTask;
use async_trait::async_trait;
use serde_json::Value;

use crate::follower::{ChildrenAtPeer, Follower};
use crate::peer::Peer;
use crate::peers::Peers;
use crate::task_request::{PeerConfig, RunLimits};

/// Runs tasks at other orchestrators.
#[derive(Debug, Clone)]
pub struct RemoteRunner {
    peers: Peers,
    retry: RetryPolicy,
}

impl RemoteRunner {
    /// A runner with these peers. `retry` says how often a peer that does not answer is tried again; an
    /// event that is appended starts the count anew. After the last attempt the task waits for its peer.
    pub fn new(peers: Peers, retry: RetryPolicy) -> Self {
        Self { peers, retry }
    }

    fn find(&self, config: &Value) -> Result<(&Peer, PeerConfig), String> {
        let config = PeerConfig::parse(config)?;
        let found = match &config.peer {
            Some(name) => self.peers.find(name),
            None => self.peers.only(),
        };
        if let Some(peer) = found {
            return Ok((peer, config));
        }
        let known: Vec<&str> = self.peers.names().collect();
        Err(match (&config.peer, known.as_slice()) {
            (Some(name), []) => format!("there is no peer `{name}`: none is configured"),
            (Some(name), known) => format!("there is no peer `{name}`, only {}", known.join(", ")),
            (None, []) => "there is no peer: none is configured".to_owned(),
            (None, known) => {
                format!("there are several peers, name one with `peer`: {}", known.join(", "))
            }
        })
    }

    fn peer_of(&self, task: RemoteTask<'_>) -> Result<&Peer, RemoteError> {
        let found = self.find(task.config).map_err(|reason| RemoteError::Refused { reason });
        found.map(|(peer, _)| peer)
    }
}

#[async_trait]
impl Runner for RemoteRunner {
    fn kind(&self) -> &'static str {
        "loopback"
    }

    fn uses_run_provider(&self) -> bool {
        false
    }

    fn is_orchestrator(&self) -> bool {
        true
    }

    fn check(&self, config: &Value) -> Result<(), String> {
        self.find(config).map(drop)
    }

    /// The peer is named, also when it is the only one now.
    fn with_defaults(&self, config: &Value) -> Value {
        let mut config = config.clone();
        if let (Ok((peer, _)), Value::Object(fields)) = (self.find(&config), &mut config) {
            fields.insert("peer".to_owned(), Value::String(peer.name.clone()));
        }
        config
    }

    async fn cancel_remote(&self, task: RemoteTask<'_>) -> Result<(), RemoteError> {
        let peer = self.peer_of(task)?;
        let canceled = match task.remote_task_id {
            Some(task_id) => peer.cancel(task_id).await,
            None => peer.cancel_by_key(task.task_id).await,
        };
        canceled.map_err(|failure| failure.of_peer(&peer.name))
    }

    async fn send_remote(
        &self,
        task: RemoteTask<'_>,
        message: &MessageQueued,
    ) -> Result<(), RemoteError> {
        let peer = self.peer_of(task)?;
        let Some(task_id) = task.remote_task_id else {
            let reason = format!("the peer `{}` has not started the task yet", peer.name);
            return Err(RemoteError::Unavailable { reason });
        };
        peer.send(task_id, message).await
    }

    async fn run(&self, run: RunnerTask) -> Result<(), RunnerError> {
        let found = self.find(&run.config);
        let (peer, config) = found.map_err(|reason| RunnerError::Refused { reason })?;
        let local = LocalTask::read(&*run.journal, &run.task_id).await?;
        let follower = Follower {
            peer,
            config,
            retry: self.retry,
            waits: self.retry.waits(),
            local,
            limits: RunLimits { limits: run.limits, dispatches: run.dispatches },
            journal: run.journal,
            cancel: run.cancel,
            canceled: false,
            interrupt: run.interrupt,
            interrupted: false,
            has_children: ChildrenAtPeer::Unknown,
            updates: run.updates,
        };
        tokio::select! {
            // The remote task goes on; the next run reads its further events.
            () = run.shutdown => Ok(()),
            ended = follower.run() => ended,
        }
    }
}
