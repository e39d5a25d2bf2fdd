//! The wait of a task in an outage: the detail of `status_changed` when a running task is
//! `waiting_for` its `model` or its `peer`.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{StatusChanged, WaitingFor};
use crate::TaskStatus;

/// Most characters of the failure in a list.
const ERROR_CHARS_MAX: usize = 200;

/// Why a task waits for its model, its peer or the journal, and until when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutageWait {
    /// Code of the last failure, such as `overloaded`.
    pub code: String,
    /// Text of the last failure.
    pub error: String,
    /// Number of failed attempts in a row.
    pub attempt: u32,
    /// Time of the next attempt.
    pub next_at: DateTime<Utc>,
    /// Whether a part of the answer was shown: another answer takes its place. Absent: `false`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub superseded: bool,
}

/// Code of a wait for a peer.
pub const PEER_UNAVAILABLE: &str = "peer_unavailable";

impl OutageWait {
    /// The wait that a new status begins, if it does.
    pub fn of(change: &StatusChanged) -> Option<Self> {
        let waits = change.waiting_for.is_some_and(WaitingFor::is_outage);
        let detail = change.detail.as_ref().filter(|_| waits)?;
        Self::deserialize(detail).ok()
    }

    /// The same with a failure that fits into a list.
    #[must_use]
    pub fn shortened(self) -> Self {
        Self { error: self.error.chars().take(ERROR_CHARS_MAX).collect(), ..self }
    }

    /// The status that begins the wait for what is away.
    pub fn status(&self, away: WaitingFor) -> StatusChanged {
        StatusChanged {
            detail: serde_json::to_value(self).ok(),
            waiting_for: Some(away),
            ..StatusChanged::new(TaskStatus::Running)
        }
    }
}
