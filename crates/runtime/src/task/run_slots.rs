//! The tasks that are being worked on, and who looks after them.
//!
//! Each has a place among those that run. What stops for a reason that may pass (the journal is out
//! of reach, a panic, no sign of life) is taken up again, a little later each time; what waits for
//! somebody gives up its place and costs nothing. When all places are taken, a task waits for the
//! next free one.

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

/// Tasks that run at a time. The next one waits for a place.
pub const TASKS_RUNNING_MAX: usize = 16_384;

/// Tasks of which it is known why they stopped before their end; the oldest is forgotten.
const STOPPED_MAX: usize = 256;

/// A task that is being worked on.
#[derive(Debug)]
pub(crate) struct Running {
    /// Fires when it should end.
    pub(crate) cancel: CancellationToken,
    /// Fires when nobody works on it any more.
    pub(crate) left: CancellationToken,
    /// Why not, if it has neither ended nor waits for somebody.
    pub(crate) why: OnceLock<OrchestratorError>,
    /// It waits for somebody.
    pub(crate) rests: AtomicBool,
    began: Instant,
    /// The last sign of life, in milliseconds since it began.
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

    /// A sign of life.
    pub(crate) fn beat(&self) {
        let passed = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.beat_ms.store(passed, Ordering::Relaxed);
    }

    /// How long ago the last sign of life was.
    pub(crate) fn silence(&self) -> Duration {
        let last = self.began + Duration::from_millis(self.beat_ms.load(Ordering::Relaxed));
        last.elapsed()
    }

    /// Returns when there was no sign of life for so long.
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

/// The places.
#[derive(Debug, Default)]
pub(crate) struct RunSlots {
    book: Mutex<Book>,
    /// Rings whenever a place is given up.
    vacated: Notify,
}

#[derive(Debug, Default)]
struct Book {
    running: HashMap<TaskId, Arc<Running>>,
    /// Those of them that have something new to look at before they leave.
    called: HashSet<TaskId>,
    /// Those that wait for a place, in order.
    waiting: VecDeque<TaskId>,
    /// Why those that stopped before their end did, the latest last.
    stopped: VecDeque<(TaskId, OrchestratorError)>,
}

impl RunSlots {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn find(&self, task_id: &TaskId) -> Option<Arc<Running>> {
        self.book().running.get(task_id).cloned()
    }

    /// Whether somebody works on a task, or will when there is a place.
    pub(crate) fn is_taken(&self, task_id: &TaskId) -> bool {
        let book = self.book();
        book.running.contains_key(task_id) || book.waiting.contains(task_id)
    }

    /// Why nobody works on a task that should be worked on.
    pub(crate) fn why(&self, task_id: &TaskId) -> Option<OrchestratorError> {
        let book = self.book();
        book.stopped.iter().rev().find(|(stopped, _)| stopped == task_id).map(|(_, e)| e.clone())
    }

    /// Returns when nobody works on a task and it does not wait for a place either.
    pub(crate) async fn left(&self, task_id: &TaskId) {
        loop {
            // Listens before it looks, so that nothing is missed in between.
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

    /// A place for a task; `None` when it has one already, and then it looks again before it
    /// leaves, or when it has to wait for one.
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

    /// Gives up a place, unless there is something new to look at. Says whether it did.
    fn leave(&self, task_id: &TaskId) -> bool {
        let mut book = self.book();
        if book.called.remove(task_id) {
            return false;
        }
        book.running.remove(task_id);
        true
    }

    /// Gives up a place whatever there is to look at, and says who gets it.
    fn vacate(&self, task_id: &TaskId, running: &Arc<Running>) -> Option<TaskId> {
        let mut book = self.book();
        if let Some(why) = running.why.get().cloned() {
            if book.stopped.len() == STOPPED_MAX {
                book.stopped.pop_front();
            }
            book.stopped.push_back((task_id.clone(), why));
        }
        // It may be somebody else's by now.
        if book.running.get(task_id).is_some_and(|there| Arc::ptr_eq(there, running)) {
            book.called.remove(task_id);
            book.running.remove(task_id);
        }
        book.waiting.pop_front()
    }
}

/// Begins to work on a task, or has it looked at again.
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

/// A place, given up however its task ends.
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

/// Works on a task until it has ended or waits for somebody, however often it stops on the way.
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
        // What it had in mind may not have been written: it is read again from the journal.
        inner.kin.forget(task_id);
        inner.outstanding.forget(task_id);
        if restarts == settings.restarts_max || !may_pass(&stopped) || inner.stop.is_cancelled() {
            // Whoever waits is told; the task can be resumed.
            tracing::error!(task.id = %task_id, error = %stopped, "a task stopped before its end");
            let _ = running.why.set(stopped);
            inner.world.tools.release(task_id).await;
            return;
        }
        tracing::warn!(task.id = %task_id, error = %stopped, "a task is taken up again");
        restarts += 1;
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = inner.stop.cancelled() => {}
        }
        pause *= 2;
    }
}

/// Whether trying again may help.
fn may_pass(error: &OrchestratorError) -> bool {
    matches!(
        error,
        OrchestratorError::Journal(JournalError::Unavailable { .. })
            | OrchestratorError::Fault { .. }
            | OrchestratorError::Silent { .. }
    )
}
