//! Watching the journal.
//!
//! A follower reads what was written and then waits for more. It reads everything from the
//! journal, at its own pace: there is no gap between what was and what is, nothing comes twice,
//! and one that is slow holds nobody up and loses nothing. One that follows a single task is woken
//! by that task alone, and what that task wrote last it finds at hand (`tail`).

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use antiphon_core::port::{Journal, JournalError, Read};
use antiphon_core::{Event, Position, Seq, TaskId};
use tokio::sync::watch;

use crate::watch::recent_events::{Budget, SerializedEvent, Tail};

/// Events read at a time.
const PAGE: NonZeroUsize = NonZeroUsize::new(256).unwrap();

/// Bells of single tasks that are kept before those that nobody hears are thrown away.
const BELLS_SWEPT: usize = 1024;

/// Tells followers that there is something to read.
#[derive(Debug)]
pub(crate) struct Notifier {
    all: watch::Sender<Position>,
    tasks: Mutex<TaskChannels>,
    budget: Budget,
}

#[derive(Debug)]
struct TaskChannels {
    tasks: HashMap<TaskId, Arc<TaskChannel>>,
    /// How many there may be before it is looked which nobody hears.
    swept_at: usize,
}

/// The bell of one task, and what it wrote last.
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

    /// Something was written, up to `position`.
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

    /// Where a task is followed, if it is.
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

    /// The tower of a task, built if it is not there, and its bell.
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
        // Under the lock: nobody sweeps it away in between.
        (Arc::clone(tower), tower.bell.subscribe())
    }
}

/// Somebody who watches the journal.
pub struct Follower {
    journal: Arc<dyn Journal>,
    bell: watch::Receiver<Position>,
    task: Option<Followed>,
    after: Position,
    /// Whether there was nothing behind what it has seen, when it last looked. From then on the bell says
    /// whether there is.
    caught_up: bool,
    ready: VecDeque<Arc<SerializedEvent>>,
    behind: u64,
}

/// The one task that is followed.
struct Followed {
    task_id: TaskId,
    tower: Arc<TaskChannel>,
    /// The last event that was seen, once it is known which.
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

    /// The next event; waits for it if need be. Cancel safe: a `next` that was dropped has taken
    /// nothing.
    pub async fn next(&mut self) -> Result<Event, JournalError> {
        Ok(SerializedEvent::into_event(self.next_told().await?))
    }

    /// The same, shared with others who follow. Cancel safe.
    pub async fn next_told(&mut self) -> Result<Arc<SerializedEvent>, JournalError> {
        loop {
            if let Some(told) = self.next_ready() {
                return Ok(told);
            }
            self.look().await?;
        }
    }

    /// The next event, if nobody has to wait for it.
    pub fn next_ready(&mut self) -> Option<Arc<SerializedEvent>> {
        let told = self.ready.pop_front()?;
        self.after = told.event().position;
        if let Some(task) = &mut self.task {
            task.seen = Some(told.event().seq);
        }
        Some(told)
    }

    /// Looks for what is behind what was seen, and waits when there is nothing.
    async fn look(&mut self) -> Result<(), JournalError> {
        // Marked as seen before reading, so that what is written meanwhile wakes us.
        let rung = *self.bell.borrow_and_update();
        if !self.caught_up || rung > self.after {
            self.ready = self.at_hand();
            if self.ready.is_empty() {
                self.read().await?;
            } else {
                // What comes behind that rings, or has rung.
                self.caught_up = true;
            }
            if !self.ready.is_empty() {
                return Ok(());
            }
        }
        self.bell.changed().await.map_err(|_| JournalError::Unavailable {
            reason: "the orchestrator has ended".to_owned(),
        })
    }

    /// What the task wrote last, if that is what comes next.
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

    /// How far was written of what it follows, as far as that was since it began. 0 is nothing.
    pub fn written(&self) -> watch::Receiver<Position> {
        self.bell.clone()
    }

    /// Where it is: a follower that begins behind this position misses nothing.
    pub fn position(&self) -> Position {
        self.after
    }

    /// How many events of the whole journal it had not seen when it last looked there.
    pub fn behind(&self) -> u64 {
        self.behind + self.ready.len() as u64
    }
}
