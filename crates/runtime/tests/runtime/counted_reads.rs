//! A journal that counts what is read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use antiphon_conformance::reference::{DelegatingJournal, JournalHooks};
use antiphon_core::port::{
    Checkpoint, History, HistoryExtent, Journal, JournalError, Page, Read, TaskQuery,
};
use antiphon_core::{Event, HistoryRef, StatusChanged, TaskId, TaskSummary};
use async_trait::async_trait;

/// A journal that counts what is read.
pub(crate) struct CountedReads {
    pub(crate) inner: Arc<dyn Journal>,
    reads: AtomicUsize,
    events: AtomicUsize,
    histories: AtomicUsize,
    rows: AtomicUsize,
}

/// Reads, and what was decoded for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Cost {
    pub(crate) reads: usize,
    pub(crate) events: usize,
    /// Reads of a conversation.
    pub(crate) histories: usize,
    /// Rows of tasks.
    pub(crate) rows: usize,
}

impl CountedReads {
    pub(crate) fn on(inner: &Arc<dyn Journal>) -> Arc<DelegatingJournal<Self>> {
        Arc::new(DelegatingJournal(Self {
            inner: Arc::clone(inner),
            reads: AtomicUsize::new(0),
            events: AtomicUsize::new(0),
            histories: AtomicUsize::new(0),
            rows: AtomicUsize::new(0),
        }))
    }

    fn count(&self, events: usize) {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.events.fetch_add(events, Ordering::SeqCst);
    }

    /// What was read since the last call.
    pub(crate) fn take(&self) -> Cost {
        let taken = |count: &AtomicUsize| count.swap(0, Ordering::SeqCst);
        Cost {
            reads: taken(&self.reads),
            events: taken(&self.events),
            histories: taken(&self.histories),
            rows: taken(&self.rows),
        }
    }
}

#[async_trait]
impl JournalHooks for CountedReads {
    fn inner(&self) -> &dyn Journal {
        &*self.inner
    }

    async fn read(&self, read: Read) -> Result<Page, JournalError> {
        let page = self.inner().read(read).await?;
        self.count(page.events.len());
        Ok(page)
    }

    async fn history(
        &self,
        until: HistoryRef,
        extent: HistoryExtent,
    ) -> Result<History, JournalError> {
        let history = self.inner().history(until, extent).await?;
        self.count(history.events.len());
        self.histories.fetch_add(1, Ordering::SeqCst);
        Ok(history)
    }

    async fn first_events(&self, tasks: Vec<TaskId>) -> Result<Vec<Event>, JournalError> {
        let first = self.inner().first_events(tasks).await?;
        self.count(first.len());
        Ok(first)
    }

    async fn last_status(&self, task_id: &TaskId) -> Result<Option<StatusChanged>, JournalError> {
        self.count(1);
        self.inner().last_status(task_id).await
    }

    async fn checkpoint(&self, task_id: &TaskId) -> Result<Option<Checkpoint>, JournalError> {
        self.count(0);
        self.inner().checkpoint(task_id).await
    }

    async fn tasks(&self, query: TaskQuery) -> Result<Vec<TaskSummary>, JournalError> {
        self.count(0);
        let tasks = self.inner().tasks(query).await?;
        self.rows.fetch_add(tasks.len(), Ordering::SeqCst);
        Ok(tasks)
    }
}
