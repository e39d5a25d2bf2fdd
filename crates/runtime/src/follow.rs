//! Watching the journal.
//!
//! A follower reads what was written and then waits for more. It reads everything from the
//! journal, at its own pace: there is no gap between what was and what is, nothing comes twice,
//! and one that is slow holds nobody up and loses nothing. One that follows a single task is woken
//! by that task alone.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use antiphon_core::port::{Journal, JournalError, Read};
use antiphon_core::{Event, Position, TaskId};
use tokio::sync::watch;

/// Events read at a time.
const PAGE: NonZeroUsize = NonZeroUsize::new(256).unwrap();

/// Bells of single tasks that are kept before those that nobody hears are thrown away.
const BELLS_SWEPT: usize = 1024;

/// Tells followers that there is something to read.
#[derive(Debug)]
pub(crate) struct Bells {
    all: watch::Sender<Position>,
    tasks: Mutex<HashMap<TaskId, watch::Sender<Position>>>,
}

impl Bells {
    pub(crate) fn new() -> Self {
        Self { all: watch::Sender::new(Position(0)), tasks: Mutex::default() }
    }

    /// Something was written, up to `position`.
    pub(crate) fn ring(&self, task_id: &TaskId, position: Position) {
        let louder = |last: &mut Position| {
            let news = position > *last;
            *last = position.max(*last);
            news
        };
        self.all.send_if_modified(louder);
        let tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bell) = tasks.get(task_id) {
            bell.send_if_modified(louder);
        }
    }

    pub(crate) fn hear(&self, task_id: Option<&TaskId>) -> watch::Receiver<Position> {
        let Some(task_id) = task_id else { return self.all.subscribe() };
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        if tasks.len() >= BELLS_SWEPT {
            tasks.retain(|_, bell| bell.receiver_count() > 0);
        }
        let bell = tasks.entry(task_id.clone());
        bell.or_insert_with(|| watch::Sender::new(Position(0))).subscribe()
    }
}

/// Somebody who watches the journal.
pub struct Follower {
    journal: Arc<dyn Journal>,
    bell: watch::Receiver<Position>,
    task_id: Option<TaskId>,
    after: Position,
    ready: VecDeque<Event>,
    behind: u64,
}

impl Follower {
    pub(crate) fn new(
        journal: Arc<dyn Journal>,
        bells: &Bells,
        task_id: Option<TaskId>,
        after: Position,
    ) -> Self {
        let bell = bells.hear(task_id.as_ref());
        Self { journal, bell, task_id, after, ready: VecDeque::new(), behind: 0 }
    }

    /// The next event; waits for it if need be. Cancel safe: a `next` that was dropped has taken
    /// nothing.
    pub async fn next(&mut self) -> Result<Event, JournalError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.after = event.position;
                return Ok(event);
            }
            // Marked as seen before reading, so that what is written meanwhile wakes us.
            self.bell.borrow_and_update();
            let read = Read { task_id: self.task_id.clone(), after: self.after, limit: PAGE };
            let page = self.journal.read(read).await?;
            self.behind = page.head.0.saturating_sub(page.next.0);
            self.ready = page.events.into();
            if self.ready.is_empty() && self.bell.changed().await.is_err() {
                return Err(JournalError::Unavailable {
                    reason: "the orchestrator has ended".to_owned(),
                });
            }
        }
    }

    /// How far was written of what it follows, as far as that was since it began. 0 is nothing.
    pub fn written(&self) -> watch::Receiver<Position> {
        self.bell.clone()
    }

    /// Where it is: a follower that begins behind this position misses nothing.
    pub fn position(&self) -> Position {
        self.after
    }

    /// How many events of the whole journal it had not seen when it last looked.
    pub fn behind(&self) -> u64 {
        self.behind + self.ready.len() as u64
    }
}
