//! Watching the journal.
//!
//! A follower reads what was written and then waits for more. It reads everything from the
//! journal, at its own pace: there is no gap between what was and what is, nothing comes twice,
//! and one that is slow holds nobody up and loses nothing.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::Arc;

use antiphon_core::port::{Journal, JournalError, Read};
use antiphon_core::{Event, Position, TaskId};
use tokio::sync::watch;

/// Events read at a time.
const PAGE: NonZeroUsize = NonZeroUsize::new(256).unwrap();

/// Somebody who watches the journal.
pub struct Follower {
    journal: Arc<dyn Journal>,
    head: watch::Receiver<Position>,
    task_id: Option<TaskId>,
    after: Position,
    ready: VecDeque<Event>,
    behind: u64,
}

impl Follower {
    pub(crate) fn new(
        journal: Arc<dyn Journal>,
        head: watch::Receiver<Position>,
        task_id: Option<TaskId>,
        after: Position,
    ) -> Self {
        Self { journal, head, task_id, after, ready: VecDeque::new(), behind: 0 }
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
            self.head.borrow_and_update();
            let read = Read { task_id: self.task_id.clone(), after: self.after, limit: PAGE };
            let page = self.journal.read(read).await?;
            self.behind = page.head.0.saturating_sub(page.next.0);
            self.ready = page.events.into();
            if self.ready.is_empty() && self.head.changed().await.is_err() {
                return Err(JournalError::Unavailable {
                    reason: "the orchestrator has ended".to_owned(),
                });
            }
        }
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
