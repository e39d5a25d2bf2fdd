//! Cancels a task with all its descendants for a user. While the journal cannot be written, the user gets an error,
//! and the tree is canceled as soon as it can.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use antiphon_core::TaskId;

use crate::orchestrator_error::OrchestratorError;
use crate::services::Services;
use crate::storage::is_unavailable;
use crate::task::control::cancel::{cancel, cancel_descendants};

/// Longest wait, and pause, between two attempts to cancel a task while the journal cannot be written.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Tasks that are canceled as soon as the journal can be written.
#[derive(Debug, Default)]
pub(crate) struct PendingCancels(Mutex<HashSet<TaskId>>);

impl PendingCancels {
    /// Returns whether the task was not there yet.
    fn add(&self, task_id: &TaskId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(task_id.clone())
    }

    fn remove(&self, task_id: &TaskId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(task_id);
    }
}

/// Cancels a task and all its descendants. When this returns, it is durable. If the journal cannot be written,
/// this is an error, and they are canceled as soon as it can, if this process is there then.
pub(crate) async fn cancel_tree(
    services: &Arc<Services>,
    task_id: &TaskId,
) -> Result<(), OrchestratorError> {
    let canceled = cancel_tree_now(services, task_id).await;
    if canceled.as_ref().is_err_and(is_unavailable) && services.pending_cancels.add(task_id) {
        let (shared, task_id) = (Arc::clone(services), task_id.clone());
        services.background.tracker.spawn(async move {
            let stop = shared.background.stop.clone();
            stop.run_until_cancelled(retry_cancel(&shared, &task_id)).await;
            shared.pending_cancels.remove(&task_id);
        });
    }
    canceled
}

async fn retry_cancel(services: &Arc<Services>, task_id: &TaskId) {
    loop {
        services.storage.recovered(RETRY_AFTER).await;
        match cancel_tree_now(services, task_id).await {
            // A journal that recovers and fails again does not keep this busy.
            Err(error) if is_unavailable(&error) => tokio::time::sleep(RETRY_AFTER).await,
            Ok(()) | Err(_) => return,
        }
    }
}

async fn cancel_tree_now(
    services: &Arc<Services>,
    task_id: &TaskId,
) -> Result<(), OrchestratorError> {
    let ended = cancel(services, task_id).await;
    // Descendants of an ended task have no owner, whichever caller ended the task.
    let below = cancel_descendants(services, task_id).await;
    match ended {
        Err(error) if is_unavailable(&error) => Err(error),
        ended => below.and(ended),
    }
}
