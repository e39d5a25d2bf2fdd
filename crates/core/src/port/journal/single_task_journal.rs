//! A whole journal out of the journal of one task, for a process that runs only that task.

use std::sync::Arc;

use async_trait::async_trait;

use super::{
    AgentQuery, Append, AppendFault, Appended, ApprovalQuery, History, HistoryExtent,
    IdempotencyKey, JournalError, JournalIndex, JournalLog, Page, QueuedQuery, Read, SessionQuery,
    TaskIndex, TaskJournal, TaskQuery,
};
use crate::{
    Approval, DayRange, HistoryRef, InteractionId, LiveAgent, QueuedMessage, Replied,
    SessionSummary, Spending, StatusChanged, TaskId, TaskSummary,
};

/// Makes a [`Journal`](super::Journal) out of a [`TaskJournal`], for an orchestrator that works on
/// one task on behalf of another orchestrator. The log and the tasks come from the task's journal.
/// Every other list belongs to the other orchestrator: here it is [`JournalError::Unavailable`],
/// never an empty list.
pub struct SingleTaskJournal {
    journal: Arc<dyn TaskJournal>,
}

impl SingleTaskJournal {
    /// Wraps the journal of one task.
    pub fn new(journal: Arc<dyn TaskJournal>) -> Self {
        Self { journal }
    }
}

#[async_trait]
impl JournalLog for SingleTaskJournal {
    async fn append(&self, append: Append) -> Result<Appended, JournalError> {
        self.journal.append(append).await
    }

    async fn read(&self, read: Read) -> Result<Page, JournalError> {
        self.journal.read(read).await
    }

    async fn history(
        &self,
        until: HistoryRef,
        extent: HistoryExtent,
    ) -> Result<History, JournalError> {
        self.journal.history(until, extent).await
    }

    async fn last_status(&self, task_id: &TaskId) -> Result<Option<StatusChanged>, JournalError> {
        self.journal.last_status(task_id).await
    }

    async fn answered(&self, key: &IdempotencyKey) -> Result<Option<Appended>, JournalError> {
        self.journal.answered(key).await
    }

    async fn check_append(&self) -> Result<(), AppendFault> {
        self.journal.check_append().await
    }
}

#[async_trait]
impl TaskIndex for SingleTaskJournal {
    async fn tasks(&self, query: TaskQuery) -> Result<Vec<TaskSummary>, JournalError> {
        self.journal.tasks(query).await
    }
}

#[async_trait]
impl JournalIndex for SingleTaskJournal {
    async fn sessions(&self, _: SessionQuery) -> Result<Vec<SessionSummary>, JournalError> {
        unavailable("sessions")
    }

    async fn approvals(&self, _: ApprovalQuery) -> Result<Vec<Approval>, JournalError> {
        unavailable("approvals")
    }

    async fn agents(&self, _: AgentQuery) -> Result<Vec<LiveAgent>, JournalError> {
        unavailable("agents")
    }

    async fn queued(&self, _: QueuedQuery) -> Result<Vec<QueuedMessage>, JournalError> {
        unavailable("queued messages")
    }

    async fn reply(&self, _: InteractionId) -> Result<Option<Replied>, JournalError> {
        unavailable("replies")
    }

    async fn spending(&self, _: DayRange) -> Result<Spending, JournalError> {
        unavailable("spending")
    }
}

fn unavailable<T>(list: &str) -> Result<T, JournalError> {
    let reason = format!(
        "the journal of one task has no index of {list}: ask the orchestrator that owns the task"
    );
    Err(JournalError::Unavailable { reason })
}
