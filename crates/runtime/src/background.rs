//! The futures an orchestrator has spawned, and their end. Each one is tracked; a shutdown waits for
//! them and aborts those that do not stop in time.
//!
//! | step of a stop | what happens                                                                |
//! |----------------|-----------------------------------------------------------------------------|
//! | until quiet    | tasks go on until a moment without a call of a model or a tool              |
//! | hand over      | new work is refused; no step starts; running calls of models and tools finish |
//! | drain          | new work is refused; no task starts, no model is called; running tools finish |
//! | shutdown       | tools that still run are canceled, as after a kill; tasks record what they know |
//! | abort          | tasks that did not stop in time are dropped                                 |

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use antiphon_core::port::JournalError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::orchestrator_error::OrchestratorError;

/// All spawned futures of an orchestrator.
pub(crate) struct BackgroundTasks {
    pub(crate) tracker: TaskTracker,
    /// Fires when the orchestrator shuts down. Unfinished tasks resume in the next process.
    pub(crate) stop: CancellationToken,
    /// Fires when tools that still run are canceled.
    pub(crate) cut_off: CancellationToken,
    /// Fires when work that did not stop in time is aborted.
    pub(crate) kill: CancellationToken,
    /// Calls of models that run.
    pub(crate) model_calls: TaskTracker,
    /// Steps that call models or tools, or a worker that does.
    pub(crate) steps: TaskTracker,
    /// Set when the first moment without such a step ends the work here.
    stops_when_quiet: AtomicBool,
    /// Set when new work is refused.
    is_draining: AtomicBool,
}

impl BackgroundTasks {
    pub(crate) fn new() -> Self {
        Self {
            tracker: TaskTracker::new(),
            stop: CancellationToken::new(),
            cut_off: CancellationToken::new(),
            kill: CancellationToken::new(),
            model_calls: TaskTracker::new(),
            steps: TaskTracker::new(),
            stops_when_quiet: AtomicBool::new(false),
            is_draining: AtomicBool::new(false),
        }
    }

    /// Runs `work` to its end, even when the caller stops waiting for the result.
    pub(crate) async fn run_detached<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, OrchestratorError>> + Send + 'static,
    ) -> Result<T, OrchestratorError> {
        let aborted =
            |_| JournalError::Unavailable { reason: "the operation was interrupted".to_owned() };
        self.tracker.spawn(work).await.map_err(aborted)?
    }

    /// Refuses new work, and waits until running tools have finished, `grace` at most. Returns whether
    /// all work has stopped.
    pub(crate) async fn drain(&self, grace: Duration) -> bool {
        self.is_draining.store(true, Ordering::Relaxed);
        self.stop.cancel();
        self.tracker.close();
        tokio::time::timeout(grace, self.tracker.wait()).await.is_ok()
    }

    /// Returns at the first moment without a step that calls something. No step starts from then on; until then
    /// tasks go on, and new ones are accepted.
    pub(crate) async fn until_quiet(&self) {
        self.stops_when_quiet.store(true, Ordering::Relaxed);
        self.steps.close();
        self.steps.wait().await;
        self.is_draining.store(true, Ordering::Relaxed);
    }

    /// Tasks go on also behind a moment without such a step, unless one has come already. Returns whether they do.
    pub(crate) fn goes_on_when_quiet(&self) -> bool {
        self.stops_when_quiet.store(false, Ordering::Relaxed);
        self.steps.reopen();
        !self.is_draining()
    }

    /// Refuses new work, and waits until everything that was called has answered, however long that takes.
    pub(crate) async fn hand_over(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
        self.model_calls.close();
        self.model_calls.wait().await;
        self.stop.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }

    /// Whether no task and no step starts any more.
    pub(crate) fn starts_nothing(&self) -> bool {
        if self.stops_when_quiet.load(Ordering::Relaxed) && self.steps.is_empty() {
            self.is_draining.store(true, Ordering::Relaxed);
        }
        self.stop.is_cancelled() || self.is_draining()
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }

    /// Refuses new work once the orchestrator drains.
    pub(crate) fn check_accepts(&self) -> Result<(), OrchestratorError> {
        if self.is_draining() { Err(OrchestratorError::Stopping) } else { Ok(()) }
    }

    /// Stops all work. Aborts what has not stopped within `patience`. Returns whether all stopped
    /// in time.
    pub(crate) async fn shut_down(&self, patience: Duration) -> bool {
        self.stop.cancel();
        self.cut_off.cancel();
        self.tracker.close();
        let stopped = tokio::time::timeout(patience, self.tracker.wait()).await.is_ok();
        self.kill.cancel();
        self.tracker.wait().await;
        stopped
    }
}
