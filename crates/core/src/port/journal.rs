//! The port to the journal: the append-only log of events and the index derived from it.
//!
//! | trait            | methods                                                              | needed by                  |
//! |------------------|----------------------------------------------------------------------|----------------------------|
//! | [`JournalLog`]   | `append`, `read`, `first_events`, `history`, `answered`, `check_append` | every task, every runner   |
//! | [`TaskIndex`]    | `tasks`                                                              | a runner, for its own task |
//! | [`JournalIndex`] | `sessions`, `approvals`, `agents`, `queued`, `reply`, `spending`, `checkpoint` | the orchestrator |
//! | [`TaskJournal`]  | [`JournalLog`] and [`TaskIndex`]                                     | [`RunnerTask`](super::RunnerTask) |
//! | [`Journal`]      | [`TaskJournal`] and [`JournalIndex`]                                 | the orchestrator           |
//!
//! Guarantees of the log:
//!
//! | guarantee    | meaning                                                               |
//! |--------------|-----------------------------------------------------------------------|
//! | durable      | when [`append`](JournalLog::append) returns, a crash cannot lose the events |
//! | atomic       | the journal stores all events of an append, or none                   |
//! | ordered      | positions and seqs count from 1 without a gap                         |
//! | optimistic   | an append with a stale [`Expected`] is refused and writes nothing     |
//! | idempotent   | the same key returns the same answer and writes nothing the second time |
//! | final        | no event follows the terminal status of a task                        |
//!
//! Every journal checks an append in this order, so that all journals return the same error. An
//! append that returns an error writes nothing and does not use up its key:
//!
//! | append                                                           | answer                     |
//! |------------------------------------------------------------------|----------------------------|
//! | no events, a creation that is not first, an end that is not last | [`JournalError::Invalid`]  |
//! | over [`APPEND_EVENTS_MAX`] events, a key over [`KEY_BYTES_MAX`]   | [`JournalError::Invalid`]  |
//! | a key that was used before                                       | the first answer again     |
//! | a task that has ended                                            | [`JournalError::Ended`]    |
//! | a stale position, see [`Expected`]                                | [`JournalError::Stale`]    |
//! | a task that does not begin with its creation, or begins twice    | [`JournalError::Invalid`]  |
//! | more than the journal can store                                  | [`JournalError::Unavailable`] |

mod append;
mod checkpoint;
mod error;
mod history;
mod query;
mod single_task_journal;

use std::num::NonZeroUsize;

use async_trait::async_trait;

pub use append::{
    APPEND_EVENTS_MAX, Append, Appended, Expected, IdempotencyKey, KEY_BYTES_MAX, TaskHead,
};
pub use checkpoint::Checkpoint;
pub use error::{AppendFault, JournalError};
pub use history::{
    HISTORY_TASKS_MAX, History, HistoryCollector, HistoryExtent, missing_task, too_many_tasks,
};
pub use query::{
    AgentQuery, ApprovalQuery, ApprovalSelector, Page, QueuedQuery, Read, SessionQuery, TaskQuery,
    TaskSelector,
};
pub use single_task_journal::SingleTaskJournal;

use crate::{
    Approval, DayRange, Event, HistoryRef, InteractionId, LiveAgent, Position, QueuedMessage,
    Replied, SessionSummary, Spending, StatusChanged, TaskId, TaskSummary,
};

/// The log of events: appends them in order and reads them back.
#[async_trait]
pub trait JournalLog: Send + Sync {
    /// Appends events of one task. Refuses a stale position and writes nothing.
    async fn append(&self, append: Append) -> Result<Appended, JournalError>;

    /// Reads events in the order of their positions.
    async fn read(&self, read: Read) -> Result<Page, JournalError>;

    /// The first events of these tasks, in any order; of a task that is not there, none. One read, however many tasks they
    /// are, where the journal can do that; the default reads each task.
    async fn first_events(&self, tasks: Vec<TaskId>) -> Result<Vec<Event>, JournalError> {
        let mut first = Vec::new();
        for task_id in tasks {
            let (after, limit) = (Position(0), NonZeroUsize::MIN);
            first.extend(self.read(Read { task_id: Some(task_id), after, limit }).await?.events);
        }
        Ok(first)
    }

    /// The conversation up to an event: of its task, after those of the tasks that one continues. One
    /// read, however many tasks they are, where the journal can do that; the default reads each task.
    /// A task that is not there is [`JournalError::Corrupt`].
    async fn history(
        &self,
        until: HistoryRef,
        extent: HistoryExtent,
    ) -> Result<History, JournalError> {
        history::read_history(self, until, extent).await
    }

    /// The last recorded status of a task, with its detail. `None` before the first one. The default
    /// reads the task.
    async fn last_status(&self, task_id: &TaskId) -> Result<Option<StatusChanged>, JournalError> {
        history::read_last_status(self, task_id).await
    }

    /// The answer of the append with this key. `None` when no append used the key.
    async fn answered(&self, key: &IdempotencyKey) -> Result<Option<Appended>, JournalError>;

    /// Whether an append would be stored now. For health checks: no append calls it. A journal that
    /// cannot tell answers `Ok`.
    async fn check_append(&self) -> Result<(), AppendFault> {
        Ok(())
    }
}

/// The index of tasks.
#[async_trait]
pub trait TaskIndex: Send + Sync {
    /// Tasks in the order of their creation, the newest first.
    async fn tasks(&self, query: TaskQuery) -> Result<Vec<TaskSummary>, JournalError>;
}

/// The index over all tasks: lists and look-ups, each derived from the log.
#[async_trait]
pub trait JournalIndex: TaskIndex {
    /// Sessions, the one with the newest task first.
    async fn sessions(&self, query: SessionQuery) -> Result<Vec<SessionSummary>, JournalError>;

    /// Approvals, the oldest first.
    async fn approvals(&self, query: ApprovalQuery) -> Result<Vec<Approval>, JournalError>;

    /// Live agents in the order of their tasks' creation, the newest first, each in its last
    /// recorded state.
    async fn agents(&self, query: AgentQuery) -> Result<Vec<LiveAgent>, JournalError>;

    /// Messages in the inboxes of tasks that have not ended, in the order of arrival.
    async fn queued(&self, query: QueuedQuery) -> Result<Vec<QueuedMessage>, JournalError>;

    /// The first final answer to a request, in any task. `None` while there is none.
    async fn reply(&self, request: InteractionId) -> Result<Option<Replied>, JournalError>;

    /// Spending in these days, first and last included.
    async fn spending(&self, days: DayRange) -> Result<Spending, JournalError>;

    /// Keeps a checkpoint of a task that has not ended, in place of the one before. The default keeps none.
    async fn save_checkpoint(&self, _: Checkpoint) -> Result<(), JournalError> {
        Ok(())
    }

    /// The last checkpoint of a task. `None` when there is none, or when it does not fit the log any more.
    async fn checkpoint(&self, _: &TaskId) -> Result<Option<Checkpoint>, JournalError> {
        Ok(None)
    }

    /// Removes all checkpoints: those of a file that came from elsewhere are not believed.
    async fn forget_checkpoints(&self) -> Result<(), JournalError> {
        Ok(())
    }
}

/// The log and the index of one task: what a runner needs. Implemented by every type that is both.
pub trait TaskJournal: JournalLog + TaskIndex {}

impl<T: JournalLog + TaskIndex> TaskJournal for T {}

/// The whole journal. Implemented by every type that is a log and an index.
pub trait Journal: TaskJournal + JournalIndex {}

impl<T: JournalLog + JournalIndex> Journal for T {}
