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
