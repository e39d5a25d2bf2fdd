//! A journal for tests that differs from another journal in a few methods.

use antiphon_core::port::{
    AgentQuery, Append, AppendFault, Appended, ApprovalQuery, Checkpoint, History, HistoryExtent,
    IdempotencyKey, Journal, JournalError, JournalIndex, JournalLog, Page, QueuedQuery, Read,
    SessionQuery, TaskIndex, TaskQuery,
};
use antiphon_core::{
    Approval, DayRange, Event, HistoryRef, InteractionId, LiveAgent, QueuedMessage, Replied,
    SessionSummary, Spending, StatusChanged, TaskId, TaskSummary,
};
use async_trait::async_trait;

/// The methods of a journal, each forwarded to [`inner`](JournalHooks::inner) unless a test
/// overrides it. [`DelegatingJournal`] makes a journal of it.
#[async_trait]
pub trait JournalHooks: Send + Sync {
    /// The journal that methods are forwarded to.
    fn inner(&self) -> &dyn Journal;

    /// See [`JournalLog::append`].
    async fn append(&self, append: Append) -> Result<Appended, JournalError> {
        self.inner().append(append).await
    }

    /// See [`JournalLog::read`].
    async fn read(&self, read: Read) -> Result<Page, JournalError> {
        self.inner().read(read).await
    }

    /// See [`JournalLog::first_events`].
    async fn first_events(&self, tasks: Vec<TaskId>) -> Result<Vec<Event>, JournalError> {
        self.inner().first_events(tasks).await
    }

    /// See [`JournalLog::history`].
    async fn history(
        &self,
        until: HistoryRef,
        extent: HistoryExtent,
    ) -> Result<History, JournalError> {
        self.inner().history(until, extent).await
    }

    /// See [`JournalLog::last_status`].
    async fn last_status(&self, task_id: &TaskId) -> Result<Option<StatusChanged>, JournalError> {
        self.inner().last_status(task_id).await
    }

    /// See [`JournalLog::answered`].
    async fn answered(&self, key: &IdempotencyKey) -> Result<Option<Appended>, JournalError> {
        self.inner().answered(key).await
    }

    /// See [`JournalLog::check_append`].
    async fn check_append(&self) -> Result<(), AppendFault> {
        self.inner().check_append().await
    }

    /// See [`TaskIndex::tasks`].
    async fn tasks(&self, query: TaskQuery) -> Result<Vec<TaskSummary>, JournalError> {
        self.inner().tasks(query).await
    }

    /// See [`JournalIndex::sessions`].
    async fn sessions(&self, query: SessionQuery) -> Result<Vec<SessionSummary>, JournalError> {
        self.inner().sessions(query).await
    }

    /// See [`JournalIndex::approvals`].
    async fn approvals(&self, query: ApprovalQuery) -> Result<Vec<Approval>, JournalError> {
        self.inner().approvals(query).await
    }

    /// See [`JournalIndex::agents`].
    async fn agents(&self, query: AgentQuery) -> Result<Vec<LiveAgent>, JournalError> {
        self.inner().agents(query).await
    }

    /// See [`JournalIndex::queued`].
    async fn queued(&self, query: QueuedQuery) -> Result<Vec<QueuedMessage>, JournalError> {
        self.inner().queued(query).await
    }

    /// See [`JournalIndex::reply`].
    async fn reply(&self, request: InteractionId) -> Result<Option<Replied>, JournalError> {
        self.inner().reply(request).await
    }

    /// See [`JournalIndex::spending`].
    async fn spending(&self, days: DayRange) -> Result<Spending, JournalError> {
        self.inner().spending(days).await
    }

    /// See [`JournalIndex::save_checkpoint`].
    async fn save_checkpoint(&self, checkpoint: Checkpoint) -> Result<(), JournalError> {
        self.inner().save_checkpoint(checkpoint).await
    }

    /// See [`JournalIndex::checkpoint`].
    async fn checkpoint(&self, task_id: &TaskId) -> Result<Option<Checkpoint>, JournalError> {
        self.inner().checkpoint(task_id).await
    }

    /// See [`JournalIndex::forget_checkpoints`].
    async fn forget_checkpoints(&self) -> Result<(), JournalError> {
        self.inner().forget_checkpoints().await
    }
}

/// A journal whose methods are those of its [`JournalHooks`].
#[derive(Debug, Clone, Copy)]
pub struct DelegatingJournal<T>(pub T);

impl<T> std::ops::Deref for DelegatingJournal<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

#[async_trait]
impl<T: JournalHooks> JournalLog for DelegatingJournal<T> {
    async fn append(&self, append: Append) -> Result<Appended, JournalError> {
        self.0.append(append).await
    }

    async fn read(&self, read: Read) -> Result<Page, JournalError> {
        self.0.read(read).await
    }

    async fn first_events(&self, tasks: Vec<TaskId>) -> Result<Vec<Event>, JournalError> {
        self.0.first_events(tasks).await
    }

    async fn history(
        &self,
        until: HistoryRef,
        extent: HistoryExtent,
    ) -> Result<History, JournalError> {
        self.0.history(until, extent).await
    }

    async fn last_status(&self, task_id: &TaskId) -> Result<Option<StatusChanged>, JournalError> {
        self.0.last_status(task_id).await
    }

    async fn answered(&self, key: &IdempotencyKey) -> Result<Option<Appended>, JournalError> {
        self.0.answered(key).await
    }

    async fn check_append(&self) -> Result<(), AppendFault> {
        self.0.check_append().await
    }
}

#[async_trait]
impl<T: JournalHooks> TaskIndex for DelegatingJournal<T> {
    async fn tasks(&self, query: TaskQuery) -> Result<Vec<TaskSummary>, JournalError> {
        self.0.tasks(query).await
    }
}

#[async_trait]
impl<T: JournalHooks> JournalIndex for DelegatingJournal<T> {
    async fn sessions(&self, query: SessionQuery) -> Result<Vec<SessionSummary>, JournalError> {
        self.0.sessions(query).await
    }

    async fn approvals(&self, query: ApprovalQuery) -> Result<Vec<Approval>, JournalError> {
        self.0.approvals(query).await
    }

    async fn agents(&self, query: AgentQuery) -> Result<Vec<LiveAgent>, JournalError> {
        self.0.agents(query).await
    }

    async fn queued(&self, query: QueuedQuery) -> Result<Vec<QueuedMessage>, JournalError> {
        self.0.queued(query).await
    }

    async fn reply(&self, request: InteractionId) -> Result<Option<Replied>, JournalError> {
        self.0.reply(request).await
    }

    async fn spending(&self, days: DayRange) -> Result<Spending, JournalError> {
        self.0.spending(days).await
    }

    async fn save_checkpoint(&self, checkpoint: Checkpoint) -> Result<(), JournalError> {
        self.0.save_checkpoint(checkpoint).await
    }

    async fn checkpoint(&self, task_id: &TaskId) -> Result<Option<Checkpoint>, JournalError> {
        self.0.checkpoint(task_id).await
    }

    async fn forget_checkpoints(&self) -> Result<(), JournalError> {
        self.0.forget_checkpoints().await
    }
}
