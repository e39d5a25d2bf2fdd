//! A journal that fails once, just before or just after a message is written down as typed.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use antiphon_conformance::model::MemoryJournal;
use antiphon_core::port::{
    Append, Appended, ApprovalQuery, IdempotencyKey, Journal, JournalError, Page, Read, TaskQuery,
};
use antiphon_core::{
    Approval, DayRange, EventBody, InteractionId, LiveAgent, Queued, Replied, SessionSummary,
    Spending, TaskSummary,
};
use async_trait::async_trait;

/// When it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Death {
    BeforeWriting,
    AfterWriting,
}

pub(crate) struct DyingJournal {
    journal: MemoryJournal,
    death: Death,
    died: AtomicBool,
}

impl DyingJournal {
    pub(crate) fn new(death: Death) -> Arc<Self> {
        Arc::new(Self { journal: MemoryJournal::new(), death, died: AtomicBool::new(false) })
    }
}

#[async_trait]
impl Journal for DyingJournal {
    async fn append(&self, append: Append) -> Result<Appended, JournalError> {
        let types = |body: &EventBody| matches!(body, EventBody::MessageAppended(appended) if appended.queued.is_some());
        let dies = append.events.iter().any(types) && !self.died.swap(true, Ordering::SeqCst);
        let failed = || JournalError::Unavailable { reason: "everything dies".to_owned() };
        if dies && self.death == Death::BeforeWriting {
            return Err(failed());
        }
        let appended = self.journal.append(append).await?;
        if dies { Err(failed()) } else { Ok(appended) }
    }

    async fn read(&self, read: Read) -> Result<Page, JournalError> {
        self.journal.read(read).await
    }

    async fn tasks(&self, query: TaskQuery) -> Result<Vec<TaskSummary>, JournalError> {
        self.journal.tasks(query).await
    }

    async fn sessions(&self, limit: NonZeroUsize) -> Result<Vec<SessionSummary>, JournalError> {
        self.journal.sessions(limit).await
    }

    async fn approvals(&self, query: ApprovalQuery) -> Result<Vec<Approval>, JournalError> {
        self.journal.approvals(query).await
    }

    async fn agents(&self, limit: NonZeroUsize) -> Result<Vec<LiveAgent>, JournalError> {
        self.journal.agents(limit).await
    }

    async fn queued(&self, limit: NonZeroUsize) -> Result<Vec<Queued>, JournalError> {
        self.journal.queued(limit).await
    }

    async fn reply(&self, request: InteractionId) -> Result<Option<Replied>, JournalError> {
        self.journal.reply(request).await
    }

    async fn spending(&self, days: DayRange) -> Result<Spending, JournalError> {
        self.journal.spending(days).await
    }

    async fn answered(&self, key: &IdempotencyKey) -> Result<Option<Appended>, JournalError> {
        self.journal.answered(key).await
    }
}
