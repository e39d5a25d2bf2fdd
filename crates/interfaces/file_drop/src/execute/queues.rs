//! Orders for the same agent or task are executed one after the other, in order of arrival, each
//! answered before the next starts. All others run concurrently.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{Id, JoinSet};

use crate::execute::pending_request::{FileKey, Outcome, PendingRequest};
use crate::execute::worker::Worker;
use crate::scan::scanner::Capacity;

/// Most requests in memory. The others stay on disk.
const REQUESTS_MAX: usize = 1024;

/// Most bytes of requests in memory.
const BYTES_MAX: usize = 64 * 1024 * 1024;

/// Most orders that wait for the result of a task. At the limit, no request is read until one of
/// them ends.
pub const WAITS_MAX: usize = 1024;

/// How long running requests may take at shutdown.
const DRAIN_MAX: Duration = Duration::from_secs(5);

pub(crate) struct RequestQueues {
    worker: Arc<Worker>,
    /// Waiting requests by queue key. A key is present while a request of its queue runs.
    queues: HashMap<String, VecDeque<PendingRequest>>,
    tasks: JoinSet<Outcome>,
    running: HashMap<Id, RunningRequest>,
    count: usize,
    bytes: usize,
    waits_for_result: usize,
}

struct RunningRequest {
    key: FileKey,
    queue_key: Option<String>,
    bytes: usize,
    waits_for_result: bool,
}

impl RequestQueues {
    pub(crate) fn new(worker: Worker) -> Self {
        Self {
            worker: Arc::new(worker),
            queues: HashMap::new(),
            tasks: JoinSet::new(),
            running: HashMap::new(),
            count: 0,
            bytes: 0,
            waits_for_result: 0,
        }
    }

    /// What [`RequestQueues::submit`] can accept.
    pub(crate) fn capacity(&self) -> Capacity {
        let requests = if self.waits_for_result >= WAITS_MAX {
            0
        } else {
            REQUESTS_MAX.saturating_sub(self.count)
        };
        Capacity { requests, bytes: BYTES_MAX.saturating_sub(self.bytes) }
    }

    /// Whether at least half of the capacity is free, so that a scan is worthwhile.
    pub(crate) fn has_capacity(&self) -> bool {
        let free = self.capacity();
        free.requests > REQUESTS_MAX / 2 && free.bytes > BYTES_MAX / 2
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.tasks.is_empty()
    }

    pub(crate) fn submit(&mut self, pending: PendingRequest) {
        self.count += 1;
        self.bytes += pending.bytes;
        let Some(queue_key) = pending.queue_key() else { return self.start(pending, None) };
        match self.queues.get_mut(&queue_key) {
            Some(queue) => queue.push_back(pending),
            None => {
                self.queues.insert(queue_key.clone(), VecDeque::new());
                self.start(pending, Some(queue_key));
            }
        }
    }

    /// The next outcome; `None` when no request runs. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<(FileKey, Outcome)> {
        let (id, outcome) = match self.tasks.join_next_with_id().await? {
            Ok((id, outcome)) => (id, outcome),
            Err(error) => {
                tracing::error!(%error, "a request could not be answered");
                (error.id(), Outcome::Postponed)
            }
        };
        let RunningRequest { key, queue_key, bytes, waits_for_result } =
            self.running.remove(&id)?;
        self.bytes = self.bytes.saturating_sub(bytes);
        if waits_for_result {
            self.waits_for_result -= 1;
        } else {
            self.count -= 1;
        }
        self.advance(queue_key);
        Some((key, outcome))
    }

    /// Waits for running requests up to the limit and drops the rest: the next start finds their
    /// files again.
    pub(crate) async fn drain(mut self) {
        self.queues.clear();
        let drained = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(DRAIN_MAX, drained).await.is_err() {
            self.tasks.shutdown().await;
        }
    }

    fn start(&mut self, pending: PendingRequest, queue_key: Option<String>) {
        let waits_for_result = pending.waits_for_result();
        let (key, bytes) = (pending.key.clone(), pending.bytes);
        let handle = self.tasks.spawn(Arc::clone(&self.worker).execute(pending));
        let (kept, free) = if waits_for_result { (None, queue_key) } else { (queue_key, None) };
        self.running
            .insert(handle.id(), RunningRequest { key, queue_key: kept, bytes, waits_for_result });
        if waits_for_result {
            self.count -= 1;
            self.waits_for_result += 1;
        }
        self.advance(free);
    }

    fn advance(&mut self, queue_key: Option<String>) {
        let Some(queue_key) = queue_key else { return };
        match self.queues.get_mut(&queue_key).and_then(VecDeque::pop_front) {
            Some(next) => self.start(next, Some(queue_key)),
            None => {
                self.queues.remove(&queue_key);
            }
        }
    }
}
