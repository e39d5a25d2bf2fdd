//! A journal in memory. It keeps every guarantee of the port except `durable`.

mod journal_state;
mod task_state;

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use antiphon_core::port::{
    AgentQuery, Append, Appended, ApprovalQuery, Checkpoint, IdempotencyKey, JournalError,
    JournalIndex, JournalLog, Page, QueuedQuery, Read, SessionQuery, TaskIndex, TaskQuery,
};
use antiphon_core::{
    Approval, DayRange, Event, InteractionId, LiveAgent, Position, QueuedMessage, Replied,
    SessionSummary, Spending, TaskId, TaskSummary,
};
use async_trait::async_trait;

use journal_state::JournalState;

/// Default limit of events. One more is [`JournalError::Unavailable`].
pub const EVENTS_MAX: usize = 1_000_000;

/// Most events in a page. A longer read gets this many, and continues from there.
pub const PAGE_EVENTS_MAX: usize = 1024;

/// A journal in memory. The cost of an append or a page is proportional to its events.
#[derive(Debug)]
pub struct MemoryJournal {
    events_max: usize,
    state: RwLock<JournalState>,
    checkpoints: Mutex<HashMap<TaskId, Checkpoint>>,
}

impl MemoryJournal {
    /// An empty journal for [`EVENTS_MAX`] events.
    pub fn new() -> Self {
        Self::with_events_max(EVENTS_MAX)
    }

    /// An empty journal for `events_max` events.
    pub fn with_events_max(events_max: usize) -> Self {
        Self { events_max, state: RwLock::default(), checkpoints: Mutex::default() }
    }

    /// Everything is checked before anything changes: a poisoned lock still guards a consistent state.
    fn state(&self) -> RwLockReadGuard<'_, JournalState> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemoryJournal {
    fn checkpoints(&self) -> MutexGuard<'_, HashMap<TaskId, Checkpoint>> {
        self.checkpoints.lock().unwrap_or_else(PoisonError::into_inner)
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
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(first) = append.key.as_ref().and_then(|key| state.answered(key)) {
            return Ok(Appended { deduplicated: true, ..first.clone() });
        }
        append.check_position(state.place(&append.task_id))?;
        if append.events.len() > self.events_max.saturating_sub(state.len()) {
            return Err(JournalError::Unavailable {
                reason: format!("it is kept in memory, {} events at most", self.events_max),
            });
        }
        Ok(state.write(append))
    }

    async fn read(&self, read: Read) -> Result<Page, JournalError> {
        let (events, head) = {
            let state = self.state();
            (state.behind(&read), state.head())
        };
        let events: Vec<Event> = events.iter().map(|event| Event::clone(event)).collect();
        Ok(Page { next: events.last().map_or(read.after, |event| event.position), events, head })
    }

    async fn answered(&self, key: &IdempotencyKey) -> Result<Option<Appended>, JournalError> {
        let again = |first: &Appended| Appended { deduplicated: true, ..first.clone() };
        Ok(self.state().answered(key).map(again))
    }
}

#[async_trait]
impl TaskIndex for MemoryJournal {
    async fn tasks(&self, query: TaskQuery) -> Result<Vec<TaskSummary>, JournalError> {
        Ok(self.state().tasks(&query))
    }
}

#[async_trait]
impl JournalIndex for MemoryJournal {
    async fn sessions(&self, query: SessionQuery) -> Result<Vec<SessionSummary>, JournalError> {
        Ok(self.state().sessions(&query))
    }

    async fn approvals(&self, query: ApprovalQuery) -> Result<Vec<Approval>, JournalError> {
        Ok(self.state().approvals(&query))
    }

    async fn agents(&self, query: AgentQuery) -> Result<Vec<LiveAgent>, JournalError> {
        Ok(self.state().agents(&query))
    }

    async fn queued(&self, query: QueuedQuery) -> Result<Vec<QueuedMessage>, JournalError> {
        Ok(self.state().queued(&query))
    }

    async fn reply(&self, request: InteractionId) -> Result<Option<Replied>, JournalError> {
        Ok(self.state().reply(request))
    }

    async fn spending(&self, days: DayRange) -> Result<Spending, JournalError> {
        Ok(self.state().spending(days))
    }

    async fn save_checkpoint(&self, checkpoint: Checkpoint) -> Result<(), JournalError> {
        let head = self.state().place(&checkpoint.task_id);
        if head.is_some_and(|head| !head.ended) {
            self.checkpoints().insert(checkpoint.task_id.clone(), checkpoint);
        }
        Ok(())
    }

    async fn checkpoint(&self, task_id: &TaskId) -> Result<Option<Checkpoint>, JournalError> {
        let Some(found) = self.checkpoints().get(task_id).cloned() else { return Ok(None) };
        let Some(after) = found.position.0.checked_sub(1).map(Position) else { return Ok(None) };
        let read = Read { task_id: Some(task_id.clone()), after, limit: NonZeroUsize::MIN };
        let event = self.read(read).await?.events.pop();
        let fits = |event: Event| (event.position, event.seq) == (found.position, found.seq);
        Ok(event.is_some_and(fits).then_some(found))
    }

    async fn forget_checkpoints(&self) -> Result<(), JournalError> {
        self.checkpoints().clear();
        Ok(())
    }
}
