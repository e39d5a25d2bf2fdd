//! Errors of the journal.

use serde::{Deserialize, Serialize};

use crate::{Position, Seq, TaskId};

/// Why an append would fail now. Nothing was tried that a reader sees.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppendFault {
    /// The disk is full, read-only or failing: make room or repair it. Appends succeed again by
    /// themselves.
    #[error("the journal cannot be written: {reason}")]
    Unavailable {
        /// Cause, and what to do about it.
        reason: String,
    },
    /// Another file is in the place of the journal, or none: stop this process and restore.
    #[error("{reason}")]
    Replaced {
        /// What happened, and where the content of the journal is now.
        reason: String,
    },
}

/// Why the journal refused or failed. Each variant is one thing the caller does next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum JournalError {
    /// Another writer was first: read the task again and decide anew.
    #[error("task {task_id} is at {actual}, not at {expected}: another writer was first")]
    Stale {
        /// Id of the task of the append.
        task_id: TaskId,
        /// Seq the writer expected.
        expected: Seq,
        /// Seq of the task's last event. 0 when the task does not exist.
        actual: Seq,
    },
    /// The task is over: drop the append.
    #[error("task {task_id} has ended: nothing can be added to it")]
    Ended {
        /// Id of the task of the append.
        task_id: TaskId,
    },
    /// The caller made a mistake: fix the append.
    #[error("invalid append to task {task_id}: {reason}")]
    Invalid {
        /// Id of the task of the append.
        task_id: TaskId,
        /// Which rule the append breaks.
        reason: String,
    },
    /// The disk is full, read-only or gone, or this journal has no such list. Nothing was written.
    #[error("the journal is not available: {reason}")]
    Unavailable {
        /// Cause, and what to do about it.
        reason: String,
    },
    /// The stored data cannot be decoded.
    #[error("the journal is damaged at position {position}: {reason}")]
    Corrupt {
        /// Position of the first event that cannot be decoded. 0 when unknown.
        position: Position,
        /// What the decoder reported.
        reason: String,
    },
}
