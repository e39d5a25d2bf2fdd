//! Where a task runs.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::RunnerConfig;

/// Kind of the process of the orchestrator itself, which is no runner.
const LOCAL: &str = "local";

/// Where a task runs: in the process of the orchestrator, or on a runner.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunsOn {
    /// `local` for the process of the orchestrator, or the kind of the runner: `sandbox` for a worker process in a
    /// sandbox, `terminal` for a program in a terminal, `loopback` for a peer, …
    pub runner: String,
    /// Name of the peer that the task runs on. Absent for other runners.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
}

impl RunsOn {
    /// Whether the process of the orchestrator runs the task.
    pub fn is_local(&self) -> bool {
        self.runner == LOCAL
    }
}

impl Default for RunsOn {
    fn default() -> Self {
        Self { runner: LOCAL.to_owned(), peer: None }
    }
}

impl From<&RunnerConfig> for RunsOn {
    fn from(runner: &RunnerConfig) -> Self {
        Self { runner: runner.kind.clone(), peer: runner.peer().map(str::to_owned) }
    }
}

/// `local`, `sandbox`, or `peer office`.
impl fmt::Display for RunsOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.peer {
            Some(peer) => write!(f, "peer {peer}"),
            None => f.write_str(&self.runner),
        }
    }
}
