//! The runner: finds the peer and follows the task there.

use antiphon_client::RetryPolicy;
use antiphon_core::port::{Run, Runner, RunnerError};
use async_trait::async_trait;
use serde_json::Value;

use crate::follower::Follower;
use crate::local_task::LocalTask;
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
    /// event that is appended starts the count anew.
    pub fn new(peers: Peers, retry: RetryPolicy) -> Self {
        Self { peers, retry }
    }

    fn find(&self, config: &Value) -> Result<(&Peer, PeerConfig), String> {
        let config = PeerConfig::parse(config)?;
        if let Some(peer) = self.peers.find(&config.peer) {
            return Ok((peer, config));
        }
        let known: Vec<&str> = self.peers.names().collect();
        Err(match known.as_slice() {
            [] => format!("there is no peer `{}`: none is configured", config.peer),
            known => format!("there is no peer `{}`, only {}", config.peer, known.join(", ")),
        })
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

    async fn run(&self, run: Run) -> Result<(), RunnerError> {
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
        };
        tokio::select! {
            // The remote task goes on; the next run reads its further events.
            () = run.shutdown => Ok(()),
            ended = follower.run() => ended,
        }
    }
}
