//! The runner itself.

use std::time::Duration;

use antiphon_core::port::{Run, Runner, RunnerError};
use async_trait::async_trait;
use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use serde_json::Value;

use crate::follower::Follower;
use crate::ours::Ours;
use crate::peer::Peer;
use crate::peers::LoopbackPeers;
use crate::request::{Config, Room};

/// Has tasks worked on by other orchestrators.
#[derive(Debug, Clone)]
pub struct Loopback {
    peers: LoopbackPeers,
    persistence: Persistence,
}

/// How often a peer that cannot be reached is asked again. Every event that is written down makes
/// it start anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Persistence {
    /// Times in a row.
    pub attempts_max: usize,
    /// How long to wait before the first; twice as long before each further one.
    pub first_wait: Duration,
    /// And never longer than this.
    pub wait_max: Duration,
}

impl Default for Persistence {
    fn default() -> Self {
        Self {
            attempts_max: 10,
            first_wait: Duration::from_millis(100),
            wait_max: Duration::from_secs(10),
        }
    }
}

impl Persistence {
    pub(crate) fn waits(self) -> ExponentialBackoff {
        ExponentialBuilder::new()
            .with_jitter()
            .with_min_delay(self.first_wait)
            .with_max_delay(self.wait_max)
            .with_max_times(self.attempts_max)
            .build()
    }
}

impl Loopback {
    /// A runner that knows these peers.
    pub fn new(peers: LoopbackPeers, persistence: Persistence) -> Self {
        Self { peers, persistence }
    }

    fn find(&self, config: &Value) -> Result<(&Peer, Config), String> {
        let config = Config::parse(config)?;
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
impl Runner for Loopback {
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
        let known = self.find(&run.config);
        let (peer, config) = known.map_err(|reason| RunnerError::Refused { reason })?;
        let ours = Ours::read(&*run.journal, &run.task_id).await?;
        let waits = self.persistence.waits();
        let follower = Follower {
            peer,
            config,
            persistence: self.persistence,
            waits,
            ours,
            room: Room { limits: run.limits, dispatches: run.dispatches },
            journal: run.journal,
            cancel: run.cancel,
            canceled: false,
        };
        tokio::select! {
            // It goes on there; whoever takes our task up again hears the rest.
            () = run.shutdown => Ok(()),
            ended = follower.run() => ended,
        }
    }
}
