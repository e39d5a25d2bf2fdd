//! A journal that lasts as long as its process. It keeps every promise of the port but `durable`.

mod book;
mod chapter;

use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use antiphon_core::port::{
    AgentQuery, Append, Appended, ApprovalQuery, IdempotencyKey, JournalError, JournalIndex,
    JournalLog, Page, QueuedQuery, Read, SessionQuery, TaskIndex, TaskQuery,
};
use antiphon_core::{
    Approval, DayRange, Event, InteractionId, LiveAgent, Queued, Replied, SessionSummary, Spending,
    TaskSummary,
};
use async_trait::async_trait;

use book::Book;

/// Events a journal holds unless told otherwise. One more is [`JournalError::Unavailable`].
pub const EVENTS_MAX: usize = 1_000_000;

/// Longest page. A read that asks for more gets this many, and goes on from there.
pub const PAGE_EVENTS_MAX: usize = 1024;

/// A journal in memory. An append costs as much as its events, a page as much as its own.
#[derive(Debug)]
pub struct MemoryJournal {
    events_max: usize,
    book: RwLock<Book>,
}

impl MemoryJournal {
    /// An empty one that holds [`EVENTS_MAX`] events.
    pub fn new() -> Self {
        Self::with_events_max(EVENTS_MAX)
    }

    /// An empty one that holds `events_max` events.
    pub fn with_events_max(events_max: usize) -> Self {
        Self { events_max, book: RwLock::default() }
    }

    /// Everything is checked before anything is changed: a poisoned book is a whole book.
    fn book(&self) -> RwLockReadGuard<'_, Book> {
        self.book.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemoryJournal {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl JournalLog for MemoryJournal {
    async fn append(&self, append: Append) -> Result<Appended, JournalError> {
        append.check_shape()?;
        let mut book = self.book.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(first) = append.key.as_ref().and_then(|key| book.answered(key)) {
            return Ok(Appended { deduplicated: true, ..first.clone() });
        }
        append.check_position(book.place(&append.task_id))?;
        if append.events.len() > self.events_max.saturating_sub(book.len()) {
            return Err(JournalError::Unavailable {
                reason: format!("it is kept in memory, {} events at most", self.events_max),
            });
        }
        Ok(book.write(append))
    }

    async fn read(&self, read: Read) -> Result<Page, JournalError> {
        let (events, head) = {
            let book = self.book();
            (book.behind(&read), book.head())
        };
        let events: Vec<Event> = events.iter().map(|event| Event::clone(event)).collect();
        Ok(Page { next: events.last().map_or(read.after, |event| event.position), events, head })
    }

    async fn answered(&self, key: &IdempotencyKey) -> Result<Option<Appended>, JournalError> {
        let again = |first: &Appended| Appended { deduplicated: true, ..first.clone() };
        Ok(self.book().answered(key).map(again))
    }
}

#[async_trait]
impl TaskIndex for MemoryJournal {
    async fn tasks(&self, query: TaskQuery) -> Result<Vec<TaskSummary>, JournalError> {
        Ok(self.book().tasks(&query))
    }
}

#[async_trait]
impl JournalIndex for MemoryJournal {
    async fn sessions(&self, query: SessionQuery) -> Result<Vec<SessionSummary>, JournalError> {
        Ok(self.book().sessions(&query))
    }

    async fn approvals(&self, query: ApprovalQuery) -> Result<Vec<Approval>, JournalError> {
        Ok(self.book().approvals(&query))
    }

    async fn agents(&self, query: AgentQuery) -> Result<Vec<LiveAgent>, JournalError> {
        Ok(self.book().agents(&query))
    }

    async fn queued(&self, query: QueuedQuery) -> Result<Vec<Queued>, JournalError> {
        Ok(self.book().queued(&query))
    }

    async fn reply(&self, request: InteractionId) -> Result<Option<Replied>, JournalError> {
        Ok(self.book().reply(request))
    }

    async fn spending(&self, days: DayRange) -> Result<Spending, JournalError> {
        Ok(self.book().spending(days))
    }
}
