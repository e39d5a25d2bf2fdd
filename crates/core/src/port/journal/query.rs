//! Queries of the journal. Every list has a limit; a list that can be long has a cursor.

use std::num::NonZeroUsize;

use super::super::task_filter::TaskFilter;
use crate::{ApprovalId, Event, Position, SessionId, TaskId};

/// Selects events to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// Only events of this task. `None`: events of every task.
    pub task_id: Option<TaskId>,
    /// Only events with a higher position. `Position(0)`: from the start.
    pub after: Position,
    /// Most events to return. A page may be shorter; an empty page is the end.
    pub limit: NonZeroUsize,
}

/// Events that were read.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// Events in the order of their positions.
    pub events: Vec<Event>,
    /// `after` of the read that continues here.
    pub next: Position,
    /// Last position of the whole journal at the time of reading.
    pub head: Position,
}

/// Selects tasks to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskQuery {
    /// Which tasks to list.
    pub which: TaskSelector,
    /// Most tasks to return.
    pub limit: NonZeroUsize,
}

/// Which tasks a [`TaskQuery`] lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskSelector {
    /// Every task.
    All,
    /// Tasks without a parent.
    Roots,
    /// Tasks without a terminal status.
    Unfinished,
    /// The task with this id, if it exists.
    One(TaskId),
    /// Tasks whose id starts with this text, or whose id is a UUID with a random part that does.
    IdPrefix(String),
    /// Tasks of the tree with this root, the root included.
    Tree(TaskId),
    /// Tasks of this session.
    Session(SessionId),
    /// Tasks that match a filter, page by page.
    Matching(TaskFilter),
}

/// Selects sessions to list, the one with the newest task first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionQuery {
    /// Only sessions whose newest task was created before this task: the
    /// [`last_task`](crate::SessionSummary::last_task) of the last session of the page before. A
    /// task that does not exist gives an empty page. `None`: from the newest.
    pub before: Option<TaskId>,
    /// Most sessions to return.
    pub limit: NonZeroUsize,
}

/// Selects approvals to list, the oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalQuery {
    /// Which approvals to list.
    pub which: ApprovalSelector,
    /// Only approvals requested after this one. An approval that does not exist gives an empty
    /// page. `None`: from the oldest.
    pub after: Option<ApprovalId>,
    /// Most approvals to return.
    pub limit: NonZeroUsize,
}

/// Which approvals an [`ApprovalQuery`] lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalSelector {
    /// Every approval.
    All,
    /// Approvals without a decision.
    Pending,
    /// Approvals of the tasks that this API key pays for.
    AllOf(String),
    /// Approvals without a decision, of the tasks that this API key pays for.
    PendingOf(String),
    /// Approvals without a decision, of the tasks of the tree with this root.
    PendingIn(TaskId),
    /// The approval with this id, if it exists.
    One(ApprovalId),
}

/// Selects live agents to list, the one with the newest task first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentQuery {
    /// Only agents whose task was created before this one. A task that does not exist gives an
    /// empty page. `None`: from the newest.
    pub before: Option<TaskId>,
    /// Most agents to return.
    pub limit: NonZeroUsize,
}

/// Selects queued messages to list, in the order of arrival.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedQuery {
    /// Only messages that arrived after this position: the [`position`](crate::QueuedMessage::position)
    /// of the last message of the page before. `Position(0)`: from the oldest.
    pub after: Position,
    /// Most messages to return.
    pub limit: NonZeroUsize,
}

impl ApprovalQuery {
    /// Approvals of one selection, unless a query says otherwise.
    pub const MAX: NonZeroUsize = NonZeroUsize::new(100_000).unwrap();
}

impl From<ApprovalSelector> for ApprovalQuery {
    fn from(which: ApprovalSelector) -> Self {
        Self { which, after: None, limit: Self::MAX }
    }
}

impl From<NonZeroUsize> for SessionQuery {
    fn from(limit: NonZeroUsize) -> Self {
        Self { before: None, limit }
    }
}

impl From<NonZeroUsize> for AgentQuery {
    fn from(limit: NonZeroUsize) -> Self {
        Self { before: None, limit }
    }
}

impl From<NonZeroUsize> for QueuedQuery {
    fn from(limit: NonZeroUsize) -> Self {
        Self { after: Position(0), limit }
    }
}
