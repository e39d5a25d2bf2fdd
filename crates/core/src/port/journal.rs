//! The port to the journal, the only truth.
//!
//! | promise      | meaning                                                               |
//! |--------------|-----------------------------------------------------------------------|
//! | durable      | when [`append`](Journal::append) returns, a crash cannot lose the events |
//! | atomic       | all events of an append are there, or none                            |
//! | ordered      | positions and seqs count from 1 without a gap                         |
//! | optimistic   | an append that expects another place is refused, and nothing is written |
//! | once         | the same key gives the same answer, and writes nothing the second time|
//! | final        | nothing follows the terminal status of a task                         |
//!
//! What is wrong with an append is said in this order, so that all journals answer alike; unless
//! the answer is `Ok`, nothing is written and no key is used up:
//!
//! | asked                                                            | answer                     |
//! |------------------------------------------------------------------|----------------------------|
//! | no events, a creation that is not first, an end that is not last | [`JournalError::Invalid`]  |
//! | over [`APPEND_EVENTS_MAX`] events, a key over [`KEY_BYTES_MAX`]   | [`JournalError::Invalid`]  |
//! | a key that was used                                              | the first answer again     |
//! | a task that has ended                                            | [`JournalError::Ended`]    |
//! | another place than the task is at, see [`Expected`]               | [`JournalError::Stale`]    |
//! | a task that does not begin with its creation, or begins twice    | [`JournalError::Invalid`]  |
//! | more than fits                                                   | [`JournalError::Unavailable`] |

use std::num::NonZeroUsize;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::task_filter::TaskFilter;
use crate::{
    Approval, ApprovalId, DayRange, Event, EventBody, InteractionId, LiveAgent, Position, Queued,
    Replied, Seq, SessionId, SessionSummary, Spending, TaskId, TaskSummary,
};

/// Most events in one append.
pub const APPEND_EVENTS_MAX: usize = 16_384;

/// Longest idempotency key, in bytes.
pub const KEY_BYTES_MAX: usize = 512;

/// Keeps everything that happened, in order.
#[async_trait]
pub trait Journal: Send + Sync {
    /// Adds events of one task.
    async fn append(&self, append: Append) -> Result<Appended, JournalError>;

    /// Reads events in the order of their positions.
    async fn read(&self, read: Read) -> Result<Page, JournalError>;

    /// Tasks in the order of their creation, the newest first.
    async fn tasks(&self, query: TaskQuery) -> Result<Vec<TaskSummary>, JournalError>;

    /// Conversations, the one with the newest task first.
    async fn sessions(&self, limit: NonZeroUsize) -> Result<Vec<SessionSummary>, JournalError>;

    /// Questions to a person, the oldest first.
    async fn approvals(&self, query: ApprovalQuery) -> Result<Vec<Approval>, JournalError>;

    /// Live agents, in the order of their tasks' creation, the newest first. They are where the
    /// journal last saw them.
    async fn agents(&self, limit: NonZeroUsize) -> Result<Vec<LiveAgent>, JournalError>;

    /// Messages that wait for their turn in tasks that have not ended, in the order of arrival.
    async fn queued(&self, limit: NonZeroUsize) -> Result<Vec<Queued>, JournalError>;

    /// The first final answer to a request, wherever it was written.
    async fn reply(&self, request: InteractionId) -> Result<Option<Replied>, JournalError>;

    /// What was spent in these days.
    async fn spending(&self, days: DayRange) -> Result<Spending, JournalError>;

    /// What the append with this key was answered, if there was one.
    async fn answered(&self, key: &IdempotencyKey) -> Result<Option<Appended>, JournalError>;
}

/// Events to add.
#[derive(Debug, Clone, PartialEq)]
pub struct Append {
    /// Whose.
    pub task_id: TaskId,
    /// Where the writer believes the task to be.
    pub expected: Expected,
    /// When they happened.
    pub at: DateTime<Utc>,
    /// What happened; at least one.
    pub events: Vec<EventBody>,
    /// Makes a repeated append harmless.
    pub key: Option<IdempotencyKey>,
}

impl Append {
    /// What can be said of it without knowing its task: the first row of the table.
    pub fn check_shape(&self) -> Result<(), JournalError> {
        let Some((_, others)) = self.events.split_last() else {
            return Err(self.invalid("there are no events in it"));
        };
        if self.events.len() > APPEND_EVENTS_MAX {
            let reason = format!("it has more than {APPEND_EVENTS_MAX} events: send less at once");
            return Err(self.invalid(&reason));
        }
        if self.key.as_ref().is_some_and(|key| key.0.len() > KEY_BYTES_MAX) {
            return Err(self.invalid(&format!("its key has more than {KEY_BYTES_MAX} bytes")));
        }
        if others.iter().any(EventBody::ends_task) {
            return Err(self.invalid("nothing follows a terminal status"));
        }
        let mut later = self.events.iter().skip(1);
        if later.any(|body| matches!(body, EventBody::TaskCreated(_))) {
            return Err(self.invalid("a creation is the first event of its task"));
        }
        Ok(())
    }

    /// Whether it may follow what there is of its task: the rows behind the key.
    pub fn check_place(&self, task: Option<TaskHead>) -> Result<(), JournalError> {
        if task.is_some_and(|task| task.ended) {
            return Err(JournalError::Ended { task_id: self.task_id.clone() });
        }
        let actual = task.map_or(Seq(0), |task| task.seq);
        let settled = task.map_or(Seq(0), |task| task.settled);
        let (expected, holds) = match self.expected {
            Expected::NoTask => (Seq(0), task.is_none()),
            Expected::At(seq) => (seq, seq == actual),
            Expected::Behind(seq) => (seq, settled <= seq && seq <= actual),
            Expected::There => (actual, task.is_some()),
        };
        if !holds {
            return Err(JournalError::Stale { task_id: self.task_id.clone(), expected, actual });
        }
        let creates = matches!(self.events.first(), Some(EventBody::TaskCreated(_)));
        match (task.is_none(), creates) {
            (true, true) | (false, false) => Ok(()),
            (true, false) => Err(self.invalid("a task begins with its creation")),
            (false, true) => Err(self.invalid("a task is created once")),
        }
    }

    fn invalid(&self, reason: &str) -> JournalError {
        JournalError::Invalid { task_id: self.task_id.clone(), reason: reason.to_owned() }
    }
}

/// Where a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskHead {
    /// Its last event.
    pub seq: Seq,
    /// Its last event that is more than an arrival.
    pub settled: Seq,
    /// The last was its terminal status.
    pub ended: bool,
}

/// Where a writer believes a task to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// It does not exist yet.
    NoTask,
    /// Its last event is this one.
    At(Seq),
    /// Its last event is this one, or only arrivals came since: they are in nobody's way.
    Behind(Seq),
    /// It is there, wherever it is.
    There,
}

/// A caller's own name for an append. The same key, the same answer, once.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IdempotencyKey(pub String);

/// What an append led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// The task it belongs to; for a repeated key, the first one's.
    pub task_id: TaskId,
    /// Position of the last event.
    pub position: Position,
    /// Seq of the last event.
    pub seq: Seq,
    /// The key had been used: nothing was written now.
    pub deduplicated: bool,
}

/// Which events to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// Of one task, or of all.
    pub task_id: Option<TaskId>,
    /// Those behind this position.
    pub after: Position,
    /// At most this many. A page may be shorter; an empty one is the end.
    pub limit: NonZeroUsize,
}

/// Which tasks to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskQuery {
    /// All of them, or some.
    pub which: TaskSelector,
    /// At most this many.
    pub limit: NonZeroUsize,
}

/// Which tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskSelector {
    /// Every task.
    All,
    /// Those that nobody dispatched.
    Roots,
    /// Those without a terminal status.
    Unfinished,
    /// This one, if it is there.
    One(TaskId),
    /// Those whose id begins so.
    IdPrefix(String),
    /// Those of the tree that this one is the top of, itself included.
    Tree(TaskId),
    /// Those of this conversation.
    Session(SessionId),
    /// Those that are so, page by page.
    Matching(TaskFilter),
}

/// Which approvals to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalQuery {
    /// All of them, or some.
    pub which: ApprovalSelector,
    /// At most this many.
    pub limit: NonZeroUsize,
}

/// Which approvals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalSelector {
    /// Every one.
    All,
    /// Those that nobody has answered.
    Pending,
    /// This one, if it is there.
    One(ApprovalId),
}

/// Events that were read.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// In the order of their positions.
    pub events: Vec<Event>,
    /// Where to go on.
    pub next: Position,
    /// The last position of the whole journal at the time of reading.
    pub head: Position,
}

/// Why the journal did not do as told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// Read the task again and decide anew.
    #[error("task {task_id} is at {actual}, not at {expected}: somebody else wrote first")]
    Stale {
        /// Which task.
        task_id: TaskId,
        /// Where the writer believed it to be.
        expected: Seq,
        /// Where it is.
        actual: Seq,
    },
    /// Leave it: the task is over.
    #[error("task {task_id} has ended: nothing can be added to it")]
    Ended {
        /// Which task.
        task_id: TaskId,
    },
    /// A fault of the caller.
    #[error("invalid append to task {task_id}: {reason}")]
    Invalid {
        /// Which task.
        task_id: TaskId,
        /// What is wrong.
        reason: String,
    },
    /// The disk is full, read-only or gone. Nothing was written.
    #[error("the journal is not available: {reason}")]
    Unavailable {
        /// Why, and what to do.
        reason: String,
    },
    /// What is stored cannot be understood.
    #[error("the journal is damaged at position {position}: {reason}")]
    Corrupt {
        /// Where.
        position: Position,
        /// Why.
        reason: String,
    },
}
