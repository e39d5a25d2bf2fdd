//! What the health endpoints answer.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// One answer of `/health`, `/health/ready` or `/health/live`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HealthStatus {
    /// The verdict.
    pub status: HealthState,
    /// When it was reached.
    pub timestamp: DateTime<Utc>,
}

/// The verdict of a health check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum HealthState {
    /// Every dependency answers.
    Healthy,
    /// Takes work.
    Ready,
    /// The process runs.
    Alive,
    /// A dependency is down.
    Unhealthy,
}
