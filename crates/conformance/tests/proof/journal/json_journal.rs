//! A journal that keeps its events as text, as a table would.

use std::num::NonZeroUsize;

use antiphon_conformance::model::MemoryJournal;
use antiphon_core::port::{
    Append, Appended, ApprovalQuery, IdempotencyKey, Journal, JournalError, Page, Read, TaskQuery,
};
use antiphon_core::{
    Approval, DayRange, InteractionId, LiveAgent, Queued, Replied, SessionSummary, Spending,
    TaskSummary,
};
use async_trait::async_trait;

pub(super) struct JsonJournal {
    inner: MemoryJournal,
}

impl JsonJournal {
    pub(super) fn new() -> Self {
        Self { inner: MemoryJournal::new() }
    }
}

#[async_trait]
impl Journal for JsonJournal {
    async fn append(&self, append: Append) -> Result<Appended, JournalError> {
        self.inner.append(append).await
    }

    async fn tasks(&self, query: TaskQuery) -> Result<Vec<TaskSummary>, JournalError> {
        self.inner.tasks(query).await
    }

    async fn sessions(&self, limit: NonZeroUsize) -> Result<Vec<SessionSummary>, JournalError> {
        self.inner.sessions(limit).await
    }

    async fn approvals(&self, query: ApprovalQuery) -> Result<Vec<Approval>, JournalError> {
        self.inner.approvals(query).await
    }

    async fn agents(&self, limit: NonZeroUsize) -> Result<Vec<LiveAgent>, JournalError> {
        self.inner.agents(limit).await
    }

    async fn queued(&self, limit: NonZeroUsize) -> Result<Vec<Queued>, JournalError> {
        self.inner.queued(limit).await
    }

    async fn reply(&self, request: InteractionId) -> Result<Option<Replied>, JournalError> {
        self.inner.reply(request).await
    }

    async fn spending(&self, days: DayRange) -> Result<Spending, JournalError> {
        self.inner.spending(days).await
    }

    async fn answered(&self, key: &IdempotencyKey) -> Result<Option<Appended>, JournalError> {
        self.inner.answered(key).await
    }

    async fn read(&self, read: Read) -> Result<Page, JournalError> {
        let mut page = self.inner.read(read).await?;
        for event in &mut page.events {
            let text = serde_json::to_string(event).unwrap();
            *event = serde_json::from_str(&text).unwrap();
        }
        Ok(page)
    }
}
