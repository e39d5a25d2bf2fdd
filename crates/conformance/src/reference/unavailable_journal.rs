//! A journal whose storage is gone.

use antiphon_core::port::{
    AgentQuery, Append, AppendFault, Appended, ApprovalQuery, IdempotencyKey, JournalError,
    JournalIndex, JournalLog, Page, QueuedQuery, Read, SessionQuery, TaskIndex, TaskQuery,
};
use antiphon_core::{
    Approval, DayRange, InteractionId, LiveAgent, QueuedMessage, Replied, SessionSummary, Spending,
    TaskSummary,
};
use async_trait::async_trait;

/// Answers every method with [`JournalError::Unavailable`], or as [`AppendFault`], and this reason.
#[derive(Debug, Clone)]
pub struct UnavailableJournal(pub String);

impl UnavailableJournal {
    fn unavailable<T>(&self) -> Result<T, JournalError> {
        Err(JournalError::Unavailable { reason: self.0.clone() })
    }
}

#[async_trait]
impl JournalLog for UnavailableJournal {
    async fn append(&self, _: Append) -> Result<Appended, JournalError> {
        self.unavailable()
    }

    async fn read(&self, _: Read) -> Result<Page, JournalError> {
        self.unavailable()
    }

    async fn answered(&self, _: &IdempotencyKey) -> Result<Option<Appended>, JournalError> {
        self.unavailable()
    }

    async fn check_append(&self) -> Result<(), AppendFault> {
        Err(AppendFault::Unavailable { reason: self.0.clone() })
    }
}

#[async_trait]
impl TaskIndex for UnavailableJournal {
    async fn tasks(&self, _: TaskQuery) -> Result<Vec<TaskSummary>, JournalError> {
        self.unavailable()
    }
}

#[async_trait]
impl JournalIndex for UnavailableJournal {
    async fn sessions(&self, _: SessionQuery) -> Result<Vec<SessionSummary>, JournalError> {
        self.unavailable()
    }

    async fn approvals(&self, _: ApprovalQuery) -> Result<Vec<Approval>, JournalError> {
        self.unavailable()
    }

    async fn agents(&self, _: AgentQuery) -> Result<Vec<LiveAgent>, JournalError> {
        self.unavailable()
    }

    async fn queued(&self, _: QueuedQuery) -> Result<Vec<QueuedMessage>, JournalError> {
        self.unavailable()
    }

    async fn reply(&self, _: InteractionId) -> Result<Option<Replied>, JournalError> {
        self.unavailable()
    }

    async fn spending(&self, _: DayRange) -> Result<Spending, JournalError> {
        self.unavailable()
    }
}
