//! Waiting for a task: whether it and its descendants can continue without a user or a client.

use std::time::Duration;

use antiphon_core::{TaskId, TaskStatus, TaskSummary, WaitingFor};

use crate::deps::Dispatch;
use crate::dispatch::pending_call::PendingCall;
use crate::orchestrator::Orchestrator;
use crate::orchestrator_error::OrchestratorError;
use crate::services::Services;
use crate::task::state::TaskState;

/// How often `wait` checks again whether a tree with suspended tasks is suspended as a whole. No
/// event announces that: a task that ends notifies its parent, which may wait for more tasks.
const RECHECK_AFTER: Duration = Duration::from_millis(200);

impl Orchestrator {
    /// Waits as [`rest`](Self::rest) does, and reads the task with its whole conversation.
    pub async fn wait(&self, task_id: &TaskId) -> Result<TaskState, OrchestratorError> {
        self.rest(task_id).await?;
        self.task(task_id).await
    }

    /// Waits until a task has ended, or until neither it nor a descendant can continue without the
    /// user or a client. Returns an error when the task stopped early or does not run.
    pub async fn rest(&self, task_id: &TaskId) -> Result<TaskSummary, OrchestratorError> {
        let mut seen = None;
        loop {
            // Subscribes before it checks, so that no change is missed.
            let rested = self.services.slots.suspended.notified();
            let mut updates = self.services.notifier.subscribe(Some(task_id));
            updates.borrow_and_update();
            self.services.slots.released(task_id).await;
            let task = self.services.reader.summary(task_id).await?;
            if task.status.is_terminal() || task.status == TaskStatus::InputRequired {
                return Ok(task);
            }
            // Another caller may have started it meanwhile.
            if self.services.slots.find(task_id).is_some() {
                continue;
            }
            if let Some(why) = self.services.slots.stop_reason(task_id) {
                return Err(why);
            }
            if !Box::pin(waits_for_others(&self.services, &task)).await? {
                // A start that was requested a moment ago may not have happened yet.
                if seen == Some(task.seq) {
                    // The next process goes on with it.
                    self.services.background.check_accepts()?;
                    return Err(OrchestratorError::NotRunning { task_id: task_id.clone() });
                }
                seen = Some(task.seq);
                tokio::time::sleep(RECHECK_AFTER).await;
                continue;
            }
            match Box::pin(tree_progress(&self.services, &task)).await? {
                TreeProgress::Active { suspended } => {
                    let look_again = async {
                        if suspended {
                            tokio::time::sleep(RECHECK_AFTER).await;
                        } else {
                            std::future::pending::<()>().await;
                        }
                    };
                    tokio::select! {
                        () = rested => {}
                        () = look_again => {}
                        _ = updates.changed() => {}
                    }
                }
                TreeProgress::Suspended => return Ok(task),
                TreeProgress::Stopped(why) => return Err(why),
            }
        }
    }
}

/// Progress of a task's descendants.
pub(crate) enum TreeProgress {
    /// At least one of them runs or will run.
    Active {
        /// Others are suspended: when the last running one stops, the whole tree is suspended.
        suspended: bool,
    },
    /// All wait for a user or a client.
    Suspended,
    /// One stopped early.
    Stopped(OrchestratorError),
}

/// Whether a task that does not run will be started by another task, a peer or a client.
async fn waits_for_others(
    services: &Services,
    task: &TaskSummary,
) -> Result<bool, OrchestratorError> {
    // The parent orchestrator handles requests and outages in the other case.
    let is_here = services.deps.settings.dispatch == Dispatch::Here;
    let outage = is_here && task.waiting_for.is_some_and(WaitingFor::is_outage);
    if outage || services.waiters.waits(&task.task_id) {
        return Ok(true);
    }
    let client = |pending_call: &PendingCall| matches!(pending_call, PendingCall::External { .. });
    let state = services.reader.load_without_messages(&task.task_id).await?;
    let asked = is_here && !state.outbound_requests.is_empty();
    Ok(state.pending_calls.values().any(client) || asked)
}

/// Checks whether any descendant of a task can continue without a user or a client.
pub(crate) async fn tree_progress(
    services: &Services,
    task: &TaskSummary,
) -> Result<TreeProgress, OrchestratorError> {
    let ids = std::slice::from_ref(&task.task_id);
    let mut below = services.reader.descendants(ids, &task.root).await?;
    below.retain(|task| !task.status.is_terminal());
    let suspended = below.iter().any(|task| task.status == TaskStatus::InputRequired);
    let active = |task: &TaskSummary| {
        task.waiting_for.is_some_and(WaitingFor::is_outage)
            || services.slots.is_active(&task.task_id)
    };
    if task.waiting_for.is_some_and(WaitingFor::is_outage) || below.iter().any(active) {
        return Ok(TreeProgress::Active { suspended });
    }
    if suspended {
        return Ok(TreeProgress::Suspended);
    }
    let stopped = below.iter().find_map(|task| services.slots.stop_reason(&task.task_id));
    Ok(stopped.map_or(TreeProgress::Active { suspended }, TreeProgress::Stopped))
}
