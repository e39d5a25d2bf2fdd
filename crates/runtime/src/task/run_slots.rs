//! Running tasks and their supervision.
//!
//! Each running task has a run slot. A task that stops for a passing reason (journal unavailable,
//! panic, no heartbeat) is restarted, each time after a longer pause. A suspended task gives up its
//! slot and costs nothing. When all slots are taken, a task is queued for the next free one.

use std::collections::{HashMap, HashSet, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use antiphon_core::TaskId;
use antiphon_core::port::JournalError;
use futures_util::FutureExt;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::orchestrator_error::OrchestratorError;
use crate::services::Inner;
use crate::task::step::{self, Left};

/// Maximum number of running tasks. Further tasks are queued for a run slot.
pub const TASKS_RUNNING_MAX: usize = 16_384;

/// Maximum number of stop reasons that are kept; the oldest is dropped.
const STOPPED_MAX: usize = 256;

/// A task that has a run slot.
#[derive(Debug)]
pub(crate) struct Running {
    /// Fires when the task must end.
    pub(crate) cancel: CancellationToken,
    /// Fires when the task has given up its slot.
    pub(crate) left: CancellationToken,
    /// Why the task stopped, when it neither ended nor is suspended.
    pub(crate) why: OnceLock<OrchestratorError>,
    /// Whether the task waits for a user or a client.
    pub(crate) rests: AtomicBool,
    began: Instant,
    /// The last heartbeat, in milliseconds since the start.
    beat_ms: AtomicU64,
}

impl Running {
    fn new() -> Self {
        Self {
            cancel: CancellationToken::new(),
            left: CancellationToken::new(),
            why: OnceLock::new(),
            rests: AtomicBool::new(false),
            began: Instant::now(),
            beat_ms: AtomicU64::new(0),
        }
    }

    /// Records a heartbeat.
    pub(crate) fn beat(&self) {
        let passed = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.beat_ms.store(passed, Ordering::Relaxed);
    }

    /// Time since the last heartbeat.
    pub(crate) fn silence(&self) -> Duration {
        let last = self.began + Duration::from_millis(self.beat_ms.load(Ordering::Relaxed));
        last.elapsed()
    }

    /// Returns when there was no heartbeat for `silence_max`.
    async fn silent(&self, silence_max: Duration) {
        loop {
            let silence = self.silence();
            if silence >= silence_max {
                return;
            }
            tokio::time::sleep(silence_max.saturating_sub(silence)).await;
        }
    }
}

/// The run slots, and the queue for them.
#[derive(Debug, Default)]
pub(crate) struct RunSlots {
    book: Mutex<Book>,
    /// Notified whenever a slot becomes free.
    vacated: Notify,
}

#[derive(Debug, Default)]
struct Book {
    running: HashMap<TaskId, Arc<Running>>,
    /// Running tasks that have to check for new events before they give up their slot.
    called: HashSet<TaskId>,
    /// Tasks that wait for a slot, in order.
    waiting: VecDeque<TaskId>,
    /// Why tasks stopped early, the latest last.
    stopped: VecDeque<(TaskId, OrchestratorError)>,
}

impl RunSlots {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn find(&self, task_id: &TaskId) -> Option<Arc<Running>> {
        self.book().running.get(task_id).cloned()
    }

    /// Whether a task runs or is queued for a slot.
    pub(crate) fn is_taken(&self, task_id: &TaskId) -> bool {
        let book = self.book();
        book.running.contains_key(task_id) || book.waiting.contains(task_id)
    }

    /// Why a task stopped early, if it did.
    pub(crate) fn why(&self, task_id: &TaskId) -> Option<OrchestratorError> {
        let book = self.book();
        book.stopped.iter().rev().find(|(stopped, _)| stopped == task_id).map(|(_, e)| e.clone())
    }

    /// Returns when a task neither runs nor is queued for a slot.
    pub(crate) async fn left(&self, task_id: &TaskId) {
        loop {
            // Subscribes before it checks, so that no change is missed.
            let vacated = self.vacated.notified();
            let running = self.find(task_id);
            if let Some(running) = running {
                running.left.cancelled().await;
            } else if self.book().waiting.contains(task_id) {
                vacated.await;
            } else {
                return;
            }
        }
    }

    /// Gives the task a slot. Returns `None` when it has one, and then it checks for new events before
    /// it leaves, or when it is queued for one.
    fn enter(&self, task_id: &TaskId) -> Option<Arc<Running>> {
        let mut book = self.book();
        if book.running.contains_key(task_id) {
            book.called.insert(task_id.clone());
            return None;
        }
        if book.running.len() == TASKS_RUNNING_MAX {
            if !book.waiting.contains(task_id) {
                book.waiting.push_back(task_id.clone());
            }
            return None;
        }
        book.stopped.retain(|(stopped, _)| stopped != task_id);
        let running = Arc::new(Running::new());
        book.running.insert(task_id.clone(), Arc::clone(&running));
        Some(running)
    }

    /// Gives up the slot, unless there are new events. Returns whether it did.
    fn leave(&self, task_id: &TaskId) -> bool {
        let mut book = self.book();
        if book.called.remove(task_id) {
            return false;
        }
        book.running.remove(task_id);
        true
    }

    /// Gives up the slot unconditionally. Returns the task that is next in the queue.
    fn vacate(&self, task_id: &TaskId, running: &Arc<Running>) -> Option<TaskId> {
        let mut book = self.book();
        if let Some(why) = running.why.get().cloned() {
            if book.stopped.len() == STOPPED_MAX {
                book.stopped.pop_front();
            }
            book.stopped.push_back((task_id.clone(), why));
        }
        // The slot may belong to a later run of the same task.
        if book.running.get(task_id).is_some_and(|there| Arc::ptr_eq(there, running)) {
            book.called.remove(task_id);
            book.running.remove(task_id);
        }
        book.waiting.pop_front()
    }
}

/// Starts a task, or makes a running task check for new events.
pub(crate) fn start(inner: &Arc<Inner>, task_id: &TaskId) {
    if inner.stop.is_cancelled() {
        return;
    }
    let Some(running) = inner.places.enter(task_id) else { return };
    let (inner, task_id) = (Arc::clone(inner), task_id.clone());
    let tracker = inner.tracker.clone();
    tracker.spawn(async move {
        let place = Place { inner: Arc::clone(&inner), task_id: task_id.clone(), running };
        tokio::select! {
            () = supervise(&inner, &task_id, &place.running) => {}
            () = inner.kill.cancelled() => {}
        }
    });
}

/// A slot that is given up however the run ends.
struct Place {
    inner: Arc<Inner>,
    task_id: TaskId,
    running: Arc<Running>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let next = self.inner.places.vacate(&self.task_id, &self.running);
        self.running.left.cancel();
        self.inner.places.vacated.notify_waiters();
        if self.running.rests.load(Ordering::Relaxed) || self.running.why.get().is_some() {
            self.inner.rested.notify_waiters();
        }
        if let Some(next) = next {
            start(&self.inner, &next);
        }
    }
}

/// Runs a task until it has ended or is suspended, with restarts.
async fn supervise(inner: &Arc<Inner>, task_id: &TaskId, running: &Arc<Running>) {
    let settings = inner.world.settings;
    let mut pause = settings.restart_after;
    let mut restarts = 0;
    loop {
        running.beat();
        let lap = step::run(Arc::clone(inner), task_id, Arc::clone(running));
        let stopped = tokio::select! {
            ended = AssertUnwindSafe(lap).catch_unwind() => match ended {
                Ok(Ok(left)) => {
                    running.rests.store(left == Left::Waiting, Ordering::Relaxed);
                    if left == Left::Ended || inner.stop.is_cancelled() {
                        inner.world.tools.release(task_id).await;
                    }
                    if inner.places.leave(task_id) {
                        return;
                    }
                    continue;
                }
                Ok(Err(error)) => error,
                Err(_) => OrchestratorError::Fault { task_id: task_id.clone() },
            },
            () = running.silent(settings.silence_max) => {
                OrchestratorError::Silent { task_id: task_id.clone() }
            }
        };
        // Decisions may not have been recorded: they are made again from the journal.
        inner.kin.forget(task_id);
        inner.outstanding.forget(task_id);
        if restarts == settings.restarts_max || !may_pass(&stopped) || inner.stop.is_cancelled() {
            // `wait` reports the reason; the task can be resumed.
            tracing::error!(task.id = %task_id, error = %stopped, "a task stopped early");
            let _ = running.why.set(stopped);
            inner.world.tools.release(task_id).await;
            return;
        }
        tracing::warn!(task.id = %task_id, error = %stopped, "a task is restarted");
        restarts += 1;
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = inner.stop.cancelled() => {}
        }
        pause *= 2;
    }
}

/// Whether a restart may help.
fn may_pass(error: &OrchestratorError) -> bool {
    matches!(
        error,
        OrchestratorError::Journal(JournalError::Unavailable { .. })
            | OrchestratorError::Fault { .. }
            | OrchestratorError::Silent { .. }
    )
}
