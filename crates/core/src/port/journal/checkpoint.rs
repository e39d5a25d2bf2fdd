//! The state of a task at one of its events, kept beside the log.

use crate::{Position, Seq, TaskId};

/// The state of a task at one of its events. It is derived from the log: a journal may lose it at any time, and its reader can do
/// without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Id of the task.
    pub task_id: TaskId,
    /// Seq of the last event that the state covers.
    pub seq: Seq,
    /// Position of that event.
    pub position: Position,
    /// The state, in a form that its writer reads.
    pub data: String,
}
