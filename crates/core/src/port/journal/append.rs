//! An append to the journal, and its checks.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::JournalError;
use crate::{EventBody, Position, Seq, TaskId};

/// Most events in one append.
pub const APPEND_EVENTS_MAX: usize = 16_384;

/// Longest idempotency key, in bytes.
pub const KEY_BYTES_MAX: usize = 512;

/// Events to append to one task.
#[derive(Debug, Clone, PartialEq)]
pub struct Append {
    /// Id of the task the events belong to.
    pub task_id: TaskId,
    /// Position the writer expects the task to be at.
    pub expected: Expected,
    /// Time of every event of the append.
    pub at: DateTime<Utc>,
    /// Events in order: 1 to [`APPEND_EVENTS_MAX`].
    pub events: Vec<EventBody>,
    /// Makes a repeated append harmless. `None`: a repeated append is written again.
    pub key: Option<IdempotencyKey>,
}

impl Append {
    /// Checks what does not depend on the task: the first two rows of the table.
    pub fn check_shape(&self) -> Result<(), JournalError> {
        let Some((_, others)) = self.events.split_last() else {
            return Err(self.invalid("it has no events: append at least one"));
        };
        if self.events.len() > APPEND_EVENTS_MAX {
            let reason = format!("it has more than {APPEND_EVENTS_MAX} events: split it");
            return Err(self.invalid(&reason));
        }
        if self.key.as_ref().is_some_and(|key| key.0.len() > KEY_BYTES_MAX) {
            return Err(self.invalid(&format!("its key has more than {KEY_BYTES_MAX} bytes")));
        }
        if others.iter().any(EventBody::ends_task) {
            return Err(self.invalid("no event may follow a terminal status"));
        }
        let mut later = self.events.iter().skip(1);
        if later.any(|body| matches!(body, EventBody::TaskCreated(_))) {
            return Err(self.invalid("`task_created` must be the first event of a task"));
        }
        Ok(())
    }

    /// Checks what depends on the task: the rows below the key. `task` is `None` when the journal
    /// has no such task.
    pub fn check_position(&self, task: Option<TaskHead>) -> Result<(), JournalError> {
        if task.is_some_and(|task| task.ended) {
            return Err(JournalError::Ended { task_id: self.task_id.clone() });
        }
        let actual = task.map_or(Seq(0), |task| task.seq);
        let settled = task.map_or(Seq(0), |task| task.settled);
        let (expected, holds) = match self.expected {
            Expected::NoTask => (Seq(0), task.is_none()),
            Expected::At(seq) => (seq, seq == actual),
            Expected::AtOrArrivals(seq) => (seq, settled <= seq && seq <= actual),
            Expected::Exists => (actual, task.is_some()),
        };
        if !holds {
            return Err(JournalError::Stale { task_id: self.task_id.clone(), expected, actual });
        }
        let creates = matches!(self.events.first(), Some(EventBody::TaskCreated(_)));
        match (task.is_none(), creates) {
            (true, true) | (false, false) => Ok(()),
            (true, false) => Err(self.invalid("a task must begin with `task_created`")),
            (false, true) => Err(self.invalid("a task has only one `task_created`")),
        }
    }

    fn invalid(&self, reason: &str) -> JournalError {
        JournalError::Invalid { task_id: self.task_id.clone(), reason: reason.to_owned() }
    }
}

/// Position of a task in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskHead {
    /// Seq of the last event.
    pub seq: Seq,
    /// Seq of the last event that is not an arrival, see [`EventBody::is_arrival`].
    pub settled: Seq,
    /// Whether the last event is the terminal status.
    pub ended: bool,
}

/// Position a writer expects a task to be at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// The task does not exist yet.
    NoTask,
    /// The last event of the task has this seq.
    At(Seq),
    /// Only arrivals follow the event with this seq: queued messages do not conflict with the
    /// task's writer.
    AtOrArrivals(Seq),
    /// The task exists, at any seq.
    Exists,
}

/// The caller's own name for an append. The same key returns the same answer and writes once.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IdempotencyKey(pub String);

/// Answer to an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// Id of the task the events belong to. For a repeated key: the task of the first append.
    pub task_id: TaskId,
    /// Position of the last event.
    pub position: Position,
    /// Seq of the last event.
    pub seq: Seq,
    /// Whether the key was used before. Then this append wrote nothing.
    pub deduplicated: bool,
}
