//! Who is served next: orders that touch the same agent or task one after the other, in the order
//! in which they came, the response of one before the next begins; all others at the same time.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{Id, JoinSet};

use crate::desk::Room;
use crate::job::{FileKey, Job, Outcome};
use crate::worker::Worker;

/// Most files in memory. The others stay on disk until their time comes.
const HELD_MAX: usize = 1024;

/// Most bytes of files in memory.
const HELD_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Most orders that wait for the result of a task. With more, nothing is taken in until one of them
/// ends.
pub const WAITS_MAX: usize = 1024;

/// How long those that are under way may take when everything is to end.
const DRAIN_MAX: Duration = Duration::from_secs(5);

/// Who is served next.
pub(crate) struct Lanes {
    worker: Arc<Worker>,
    /// Lanes in use, with those who wait for their turn.
    queues: HashMap<String, VecDeque<Job>>,
    tasks: JoinSet<Outcome>,
    under_way: HashMap<Id, Ticket>,
    held: usize,
    held_bytes: usize,
    waits: usize,
}

/// What is remembered of a job that was begun.
struct Ticket {
    key: FileKey,
    lane: Option<String>,
    bytes: usize,
    waits: bool,
}

impl Lanes {
    pub(crate) fn new(worker: Worker) -> Self {
        Self {
            worker: Arc::new(worker),
            queues: HashMap::new(),
            tasks: JoinSet::new(),
            under_way: HashMap::new(),
            held: 0,
            held_bytes: 0,
            waits: 0,
        }
    }

    /// How much may be submitted.
    pub(crate) fn room(&self) -> Room {
        let jobs = if self.waits >= WAITS_MAX { 0 } else { HELD_MAX.saturating_sub(self.held) };
        Room { jobs, bytes: HELD_BYTES_MAX.saturating_sub(self.held_bytes) }
    }

    /// Whether so much room is left that it is worth looking for more.
    pub(crate) fn has_room(&self) -> bool {
        let room = self.room();
        room.jobs > HELD_MAX / 2 && room.bytes > HELD_BYTES_MAX / 2
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.tasks.is_empty()
    }

    pub(crate) fn submit(&mut self, job: Job) {
        self.held += 1;
        self.held_bytes += job.bytes;
        let Some(lane) = job.lane() else { return self.begin(job, None) };
        match self.queues.get_mut(&lane) {
            Some(queue) => queue.push_back(job),
            None => {
                self.queues.insert(lane.clone(), VecDeque::new());
                self.begin(job, Some(lane));
            }
        }
    }

    /// The next that ended; never, when nothing is under way. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<(FileKey, Outcome)> {
        let (id, outcome) = match self.tasks.join_next_with_id().await? {
            Ok((id, outcome)) => (id, outcome),
            Err(error) => {
                tracing::error!(%error, "a request could not be answered");
                (error.id(), Outcome::Left)
            }
        };
        let Ticket { key, lane, bytes, waits } = self.under_way.remove(&id)?;
        self.held_bytes = self.held_bytes.saturating_sub(bytes);
        if waits {
            self.waits -= 1;
        } else {
            self.held -= 1;
        }
        self.advance(lane);
        Some((key, outcome))
    }

    /// Lets those finish that can, and drops the rest: they are found again by whoever starts next.
    pub(crate) async fn drain(mut self) {
        self.queues.clear();
        let drained = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(DRAIN_MAX, drained).await.is_err() {
            self.tasks.shutdown().await;
        }
    }

    fn begin(&mut self, job: Job, lane: Option<String>) {
        let waits = job.waits();
        let (key, bytes) = (job.key.clone(), job.bytes);
        let handle = self.tasks.spawn(Arc::clone(&self.worker).work(job));
        let (kept, free) = if waits { (None, lane) } else { (lane, None) };
        self.under_way.insert(handle.id(), Ticket { key, lane: kept, bytes, waits });
        if waits {
            self.held -= 1;
            self.waits += 1;
        }
        self.advance(free);
    }

    fn advance(&mut self, lane: Option<String>) {
        let Some(lane) = lane else { return };
        match self.queues.get_mut(&lane).and_then(VecDeque::pop_front) {
            Some(next) => self.begin(next, Some(lane)),
            None => {
                self.queues.remove(&lane);
            }
        }
    }
}
