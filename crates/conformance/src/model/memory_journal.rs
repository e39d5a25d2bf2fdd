//! A journal that lasts as long as its process. It keeps every promise of the port but `durable`.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use antiphon_core::port::{
    Append, Appended, IdempotencyKey, Journal, JournalError, Page, Read, TaskHead, TaskQuery, Which,
};
use antiphon_core::{Event, EventBody, Position, Seq, TaskId};
use async_trait::async_trait;

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

#[derive(Debug, Default)]
struct Book {
    /// The event at index `n` has position `n + 1`. Shared, so that a page is copied out after
    /// the lock is let go.
    events: Vec<Arc<Event>>,
    tasks: HashMap<TaskId, Chapter>,
    /// Tasks in the order of their creation.
    created: Vec<TaskId>,
    keys: HashMap<IdempotencyKey, Appended>,
}

/// What the journal knows of one task.
#[derive(Debug, Default)]
struct Chapter {
    /// Positions of its events: that of seq `n` is at index `n - 1`.
    positions: Vec<Position>,
    ended: bool,
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
}

impl Default for MemoryJournal {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Journal for MemoryJournal {
    async fn append(&self, append: Append) -> Result<Appended, JournalError> {
        append.check_shape()?;
        // Everything is checked before anything is changed: a poisoned book is a whole book.
        let mut book = self.book.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(first) = append.key.as_ref().and_then(|key| book.keys.get(key)) {
            return Ok(Appended { deduplicated: true, ..first.clone() });
        }
        append.check_place(book.tasks.get(&append.task_id).map(Chapter::head))?;
        if append.events.len() > self.events_max.saturating_sub(book.events.len()) {
            return Err(JournalError::Unavailable {
                reason: format!("it is kept in memory, {} events at most", self.events_max),
            });
        }
        Ok(book.write(append))
    }

    async fn read(&self, read: Read) -> Result<Page, JournalError> {
        let (events, head) = {
            let book = self.book.read().unwrap_or_else(PoisonError::into_inner);
            (book.behind(&read), book.head())
        };
        let events: Vec<Event> = events.iter().map(|event| Event::clone(event)).collect();
        Ok(Page { next: events.last().map_or(read.after, |event| event.position), events, head })
    }

    async fn tasks(&self, query: TaskQuery) -> Result<Vec<TaskId>, JournalError> {
        let book = self.book.read().unwrap_or_else(PoisonError::into_inner);
        let ended = |task_id: &TaskId| book.tasks.get(task_id).is_some_and(|task| task.ended);
        let listed = book.created.iter().rev().filter(|task_id| match query.which {
            Which::All => true,
            Which::Unfinished => !ended(task_id),
        });
        Ok(listed.take(query.limit.get()).cloned().collect())
    }
}

impl Book {
    fn head(&self) -> Position {
        Position(self.events.len() as u64)
    }

    fn write(&mut self, append: Append) -> Appended {
        let Append { task_id, expected: _, at, events, key } = append;
        let chapter = self.tasks.entry(task_id.clone()).or_default();
        if chapter.positions.is_empty() {
            self.created.push(task_id.clone());
        }
        chapter.ended = events.last().is_some_and(EventBody::ends_task);
        for body in events {
            let position = Position(self.events.len() as u64 + 1);
            chapter.positions.push(position);
            self.events.push(Arc::new(Event {
                position,
                task_id: task_id.clone(),
                seq: chapter.seq(),
                at,
                body,
            }));
        }
        let appended =
            Appended { task_id, seq: chapter.seq(), position: self.head(), deduplicated: false };
        if let Some(key) = key {
            self.keys.insert(key, appended.clone());
        }
        appended
    }

    fn behind(&self, read: &Read) -> Vec<Arc<Event>> {
        let limit = read.limit.get().min(PAGE_EVENTS_MAX);
        match &read.task_id {
            None => self.events[index(read.after).min(self.events.len())..]
                .iter()
                .take(limit)
                .cloned()
                .collect(),
            Some(task_id) => {
                let positions =
                    self.tasks.get(task_id).map_or(&[][..], |chapter| &chapter.positions);
                let seen = positions.partition_point(|position| *position <= read.after);
                positions[seen..]
                    .iter()
                    .take(limit)
                    .map(|position| Arc::clone(&self.events[index(*position) - 1]))
                    .collect()
            }
        }
    }
}

impl Chapter {
    fn seq(&self) -> Seq {
        Seq(self.positions.len() as u64)
    }

    fn head(&self) -> TaskHead {
        TaskHead { seq: self.seq(), ended: self.ended }
    }
}

fn index(position: Position) -> usize {
    usize::try_from(position.0).unwrap_or(usize::MAX)
}
