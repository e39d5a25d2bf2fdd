//! A [`JournalError`] as it travels, so that the loop in the worker does what it would do at home.

use antiphon_core::port::JournalError;
use antiphon_core::{Position, Seq, TaskId};
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum FaultWire {
    Stale { task_id: TaskId, expected: Seq, actual: Seq },
    Ended { task_id: TaskId },
    Invalid { task_id: TaskId, reason: String },
    Unavailable { reason: String },
    Corrupt { position: Position, reason: String },
}

impl From<JournalError> for FaultWire {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::Stale { task_id, expected, actual } => {
                Self::Stale { task_id, expected, actual }
            }
            JournalError::Ended { task_id } => Self::Ended { task_id },
            JournalError::Invalid { task_id, reason } => Self::Invalid { task_id, reason },
            JournalError::Unavailable { reason } => Self::Unavailable { reason },
            JournalError::Corrupt { position, reason } => Self::Corrupt { position, reason },
        }
    }
}

impl From<FaultWire> for JournalError {
    fn from(wire: FaultWire) -> Self {
        match wire {
            FaultWire::Stale { task_id, expected, actual } => {
                Self::Stale { task_id, expected, actual }
            }
            FaultWire::Ended { task_id } => Self::Ended { task_id },
            FaultWire::Invalid { task_id, reason } => Self::Invalid { task_id, reason },
            FaultWire::Unavailable { reason } => Self::Unavailable { reason },
            FaultWire::Corrupt { position, reason } => Self::Corrupt { position, reason },
        }
    }
}
