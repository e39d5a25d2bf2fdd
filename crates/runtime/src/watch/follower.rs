//! Followers of the journal.
//!
//! A follower reads recorded events and then waits for new ones. It reads everything from the journal,
//! at its own pace: there is no gap and no duplicate, and a slow follower delays no writer and loses
//! nothing. A follower of a single task is woken by that task alone. Followers find the latest events in
//! memory (`recent_events`).

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::port::{Journal, JournalError, Read};
use antiphon_core::{Event, Position, Seq, TaskId};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::watch::notifier::{EventChannel, Notifier};
use crate::watch::serialized::SerializedEvent;

/// Number of events in one read.
const PAGE: NonZeroUsize = NonZeroUsize::new(256).unwrap();

/// How long a follower waits for an event that is acknowledged after a later one, before it reads it from the journal.
const GAP_WAIT: Duration = Duration::from_millis(5);

/// Reads the events of the journal in order, and waits for new ones.
pub struct Follower {
    journal: Arc<dyn Journal>,
    updates: watch::Receiver<Position>,
    channel: Arc<EventChannel>,
    task: Option<FollowedTask>,
    after: Position,
    /// Whether the last read reached the end. From then on, `updates` says whether there is more.
    caught_up: bool,
    ready: VecDeque<Arc<SerializedEvent>>,
    behind: u64,
    /// Until when it waits for an event that is acknowledged after a later one.
    gap_until: Option<Instant>,
}

/// The single task of a follower.
struct FollowedTask {
    task_id: TaskId,
    /// Sequence number of the last returned event, once it is known.
    seen: Option<Seq>,
}

impl Follower {
    pub(crate) fn new(
        journal: Arc<dyn Journal>,
        notifier: &Notifier,
        task_id: Option<TaskId>,
        after: Position,
    ) -> Self {
        let (channel, updates) = match &task_id {
            None => notifier.subscribe_all(),
            Some(task_id) => notifier.subscribe_task(task_id),
        };
        let seen = (after == Position(0)).then_some(Seq(0));
        let task = task_id.map(|task_id| FollowedTask { task_id, seen });
        Self {
            journal,
            updates,
            channel,
            task,
            after,
            caught_up: false,
            ready: VecDeque::new(),
            behind: 0,
            gap_until: None,
        }
    }

    /// Returns the next event; waits for it if needed. Cancel safe: a dropped `next` loses no event.
    pub async fn next(&mut self) -> Result<Event, JournalError> {
        Ok(SerializedEvent::into_value(self.next_serialized().await?))
    }

    /// Like [`next`](Self::next), but shared between followers and serialized once. Cancel safe.
    pub async fn next_serialized(&mut self) -> Result<Arc<SerializedEvent>, JournalError> {
        loop {
            if let Some(event) = self.next_ready() {
                return Ok(event);
            }
            self.refill().await?;
        }
    }

    /// Returns the next event, if it is available without waiting.
    pub fn next_ready(&mut self) -> Option<Arc<SerializedEvent>> {
        let event = self.ready.pop_front()?;
        self.after = event.value().position;
        if let Some(task) = &mut self.task {
            task.seen = Some(event.value().seq);
        }
        Some(event)
    }

    /// Reads the next events, or waits when there are none.
    async fn refill(&mut self) -> Result<(), JournalError> {
        // Marked as seen before the read, so that an event recorded meanwhile wakes us.
        let written = *self.updates.borrow_and_update();
        if !self.caught_up || written > self.after {
            self.ready = self.recent_events();
            if self.ready.is_empty() {
                if self.waits_for_gap().await {
                    return Ok(());
                }
                self.read().await?;
            } else {
                // Later events notify, or have done so.
                self.caught_up = true;
            }
            self.gap_until = None;
            if !self.ready.is_empty() {
                return Ok(());
            }
        }
        self.updates.changed().await.map_err(|_| JournalError::Unavailable {
            reason: "the orchestrator has shut down".to_owned(),
        })
    }

    /// The latest events, if they directly follow the last returned one.
    fn recent_events(&self) -> VecDeque<Arc<SerializedEvent>> {
        let last = self.last();
        last.map_or_else(VecDeque::new, |last| self.channel.recent.after(last, PAGE.get()))
    }

    /// The number of the last returned event in `recent`.
    fn last(&self) -> Option<u64> {
        match &self.task {
            None => Some(self.after.0),
            Some(task) => task.seen.map(|seen| seen.0),
        }
    }

    /// Waits for the next event that is acknowledged, if the follower has had everything before, and one that comes next is
    /// still to be acknowledged. Returns false when it has waited long enough.
    async fn waits_for_gap(&mut self) -> bool {
        let gap = |last| self.channel.recent.has_gap_after(last);
        if !self.caught_up || !self.last().is_some_and(gap) {
            return false;
        }
        let until = *self.gap_until.get_or_insert_with(|| Instant::now() + GAP_WAIT);
        // A notifier that is gone is reported after the read.
        timeout_at(until, self.updates.changed()).await.is_ok_and(|changed| changed.is_ok())
    }

    async fn read(&mut self) -> Result<(), JournalError> {
        let task_id = self.task.as_ref().map(|task| task.task_id.clone());
        let page = self.journal.read(Read { task_id, after: self.after, limit: PAGE }).await?;
        self.behind = page.head.0.saturating_sub(page.next.0);
        self.caught_up = page.events.is_empty() || page.next >= page.head;
        self.ready =
            page.events.into_iter().map(|event| Arc::new(SerializedEvent::new(event))).collect();
        Ok(())
    }

    /// Whether [`next`](Self::next) finds an event without waiting for a new one.
    pub fn has_more(&self) -> bool {
        !self.ready.is_empty() || *self.updates.borrow() > self.after
    }

    /// Last recorded position of what it follows, since it began; 0 before the first event.
    pub fn written(&self) -> watch::Receiver<Position> {
        self.updates.clone()
    }

    /// Position of the last returned event. A follower that starts after it misses nothing.
    pub fn position(&self) -> Position {
        self.after
    }

    /// Number of events of the whole journal after this follower, at its last read.
    pub fn behind(&self) -> u64 {
        self.behind + self.ready.len() as u64
    }
}
