//! Followers of the journal.
//!
//! A follower reads recorded events and then waits for new ones. It reads everything from the journal,
//! at its own pace: there is no gap and no duplicate, and a slow follower delays no writer and loses
//! nothing. A follower of a single task is woken by that task alone, and finds its latest events in
//! memory (`recent_events`).

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use antiphon_core::port::{Journal, JournalError, Read};
use antiphon_core::{Event, Position, Seq, TaskId};
use tokio::sync::watch;

use crate::watch::recent_events::{Budget, SerializedEvent, Tail};

/// Number of events in one read.
const PAGE: NonZeroUsize = NonZeroUsize::new(256).unwrap();

/// Number of task channels at which those without subscribers are dropped.
const BELLS_SWEPT: usize = 1024;

/// Notifies subscribers of new events.
#[derive(Debug)]
pub(crate) struct Notifier {
    all: watch::Sender<Position>,
    tasks: Mutex<TaskChannels>,
    budget: Budget,
}

#[derive(Debug)]
struct TaskChannels {
    tasks: HashMap<TaskId, Arc<TaskChannel>>,
    /// Number of channels at which unused ones are dropped.
    swept_at: usize,
}

/// Subscribers of one task, and its latest events.
#[derive(Debug)]
pub(crate) struct TaskChannel {
    bell: watch::Sender<Position>,
    pub(crate) tail: Tail,
}

impl Notifier {
    pub(crate) fn new() -> Self {
        let towers = TaskChannels { tasks: HashMap::new(), swept_at: BELLS_SWEPT };
        Self {
            all: watch::Sender::new(Position(0)),
            tasks: Mutex::new(towers),
            budget: Budget::default(),
        }
    }

    /// Notifies subscribers that events up to `position` are recorded.
    pub(crate) fn ring(&self, task_id: &TaskId, position: Position) {
        let louder = |last: &mut Position| {
            let news = position > *last;
            *last = position.max(*last);
            news
        };
        self.all.send_if_modified(louder);
        if let Some(tower) = self.tower(task_id) {
            tower.bell.send_if_modified(louder);
        }
    }

    /// The channel of a task, if it has subscribers.
    pub(crate) fn tower(&self, task_id: &TaskId) -> Option<Arc<TaskChannel>> {
        let towers = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        towers.tasks.get(task_id).cloned()
    }

    pub(crate) fn hear(&self, task_id: Option<&TaskId>) -> watch::Receiver<Position> {
        match task_id {
            None => self.all.subscribe(),
            Some(task_id) => self.climb(task_id).1,
        }
    }

    /// Subscribes to a task, with its channel.
    fn climb(&self, task_id: &TaskId) -> (Arc<TaskChannel>, watch::Receiver<Position>) {
        let mut towers = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        if towers.tasks.len() >= towers.swept_at {
            towers.tasks.retain(|_, tower| tower.bell.receiver_count() > 0);
            towers.swept_at = BELLS_SWEPT.max(2 * towers.tasks.len());
        }
        let tower = towers.tasks.entry(task_id.clone()).or_insert_with(|| {
            let bell = watch::Sender::new(Position(0));
            Arc::new(TaskChannel { bell, tail: Tail::new(&self.budget) })
        });
        // Under the lock, so that the channel is not dropped in between.
        (Arc::clone(tower), tower.bell.subscribe())
    }
}

/// Reads the events of the journal in order, and waits for new ones.
pub struct Follower {
    journal: Arc<dyn Journal>,
    bell: watch::Receiver<Position>,
    task: Option<Followed>,
    after: Position,
    /// Whether the last read reached the end. From then on, `bell` says whether there is more.
    caught_up: bool,
    ready: VecDeque<Arc<SerializedEvent>>,
    behind: u64,
}

/// The single task of a follower.
struct Followed {
    task_id: TaskId,
    tower: Arc<TaskChannel>,
    /// Sequence number of the last returned event, once it is known.
    seen: Option<Seq>,
}

impl Follower {
    pub(crate) fn new(
        journal: Arc<dyn Journal>,
        bells: &Notifier,
        task_id: Option<TaskId>,
        after: Position,
    ) -> Self {
        let (task, bell) = match task_id {
            None => (None, bells.all.subscribe()),
            Some(task_id) => {
                let (tower, bell) = bells.climb(&task_id);
                let seen = (after == Position(0)).then_some(Seq(0));
                (Some(Followed { task_id, tower, seen }), bell)
            }
        };
        Self { journal, bell, task, after, caught_up: false, ready: VecDeque::new(), behind: 0 }
    }

    /// Returns the next event; waits for it if needed. Cancel safe: a dropped `next` loses no event.
    pub async fn next(&mut self) -> Result<Event, JournalError> {
        Ok(SerializedEvent::into_event(self.next_told().await?))
    }

    /// Like [`next`](Self::next), but shared between followers and serialized once. Cancel safe.
    pub async fn next_told(&mut self) -> Result<Arc<SerializedEvent>, JournalError> {
        loop {
            if let Some(told) = self.next_ready() {
                return Ok(told);
            }
            self.look().await?;
        }
    }

    /// Returns the next event, if it is available without waiting.
    pub fn next_ready(&mut self) -> Option<Arc<SerializedEvent>> {
        let told = self.ready.pop_front()?;
        self.after = told.event().position;
        if let Some(task) = &mut self.task {
            task.seen = Some(told.event().seq);
        }
        Some(told)
    }

    /// Reads the next events, or waits when there are none.
    async fn look(&mut self) -> Result<(), JournalError> {
        // Marked as seen before the read, so that an event recorded meanwhile wakes us.
        let rung = *self.bell.borrow_and_update();
        if !self.caught_up || rung > self.after {
            self.ready = self.at_hand();
            if self.ready.is_empty() {
                self.read().await?;
            } else {
                // Later events notify, or have done so.
                self.caught_up = true;
            }
            if !self.ready.is_empty() {
                return Ok(());
            }
        }
        self.bell.changed().await.map_err(|_| JournalError::Unavailable {
            reason: "the orchestrator has shut down".to_owned(),
        })
    }

    /// The latest events of the task, if they directly follow the last returned one.
    fn at_hand(&self) -> VecDeque<Arc<SerializedEvent>> {
        let Some(Followed { tower, seen: Some(seen), .. }) = &self.task else {
            return VecDeque::new();
        };
        tower.tail.behind(*seen, PAGE.get())
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

    /// Last recorded position of what it follows, since it began; 0 before the first event.
    pub fn written(&self) -> watch::Receiver<Position> {
        self.bell.clone()
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
