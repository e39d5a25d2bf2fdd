//! The futures an orchestrator has spawned, and their end. Each one is tracked; a shutdown waits for
//! them and aborts those that do not stop in time.

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
    /// Fires when work that did not stop in time is aborted.
    pub(crate) kill: CancellationToken,
}

impl BackgroundTasks {
    pub(crate) fn new() -> Self {
        Self {
            tracker: TaskTracker::new(),
            stop: CancellationToken::new(),
            kill: CancellationToken::new(),
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

    /// Stops all work. Aborts what has not stopped within `patience`. Returns whether all stopped
    /// in time.
    pub(crate) async fn shut_down(&self, patience: Duration) -> bool {
        self.stop.cancel();
        self.tracker.close();
        let stopped = tokio::time::timeout(patience, self.tracker.wait()).await.is_ok();
        self.kill.cancel();
        self.tracker.wait().await;
        stopped
    }
}
