//! Answers of the health endpoints.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// Answer of `/health`, `/health/ready` or `/health/live`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HealthStatus {
    /// State of the server.
    pub status: HealthState,
    /// Time of the check.
    pub timestamp: DateTime<Utc>,
    /// What is wrong; absent when nothing is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<HealthProblem>,
}

/// What is wrong with a server. Needs no credentials, so it names no file and no task: the log and
/// the metrics of the server do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HealthProblem {
    /// The journal cannot be read or written: its disk is full, read-only or failing.
    JournalUnavailable,
    /// The journal's file was deleted or replaced while the server uses it.
    JournalReplaced,
    /// A task that has not ended stopped because of an error that no retry can help.
    TaskStuck,
    /// The server is stopping, and accepts no new work.
    Draining,
    /// Another process works on the tasks of the project. The server works when that has handed them over.
    WaitingForJournal,
}

/// State of the server in a health check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum HealthState {
    /// Every dependency answers.
    Healthy,
    /// The server accepts work.
    Ready,
    /// The process runs.
    Alive,
    /// A dependency is down.
    Unhealthy,
}
