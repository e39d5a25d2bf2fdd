//! Tasks whose client follows them: another orchestrator, which may have canceled one while this process was down.
//!
//! After a restart such a task, and every task below it, waits until its client follows it again. By then the client
//! has delivered what it remembered: a canceled task does nothing more. The time limit of the task counts meanwhile.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use antiphon_core::TaskId;
use antiphon_core::port::{TaskQuery, TaskSelector};

use crate::budget::tree_usage;
use crate::orchestrator::Orchestrator;
use crate::orchestrator_error::OrchestratorError;
use crate::services::Services;
use crate::task::limits;
use crate::task::schedule::deadlines;
use crate::task::schedule::supervise;
use crate::task::state::TaskState;

/// Maximum number of tasks of a tree that are started again.
const TREE_TASKS_MAX: NonZeroUsize = tree_usage::TREE_TASKS_MAX;

/// Roots of followed trees whose clients are known to this process.
#[derive(Debug, Default)]
pub(crate) struct FollowedTrees {
    present: Mutex<HashSet<TaskId>>,
}

impl FollowedTrees {
    fn present(&self) -> MutexGuard<'_, HashSet<TaskId>> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the client of a tree is present. Returns whether it was not.
    pub(crate) fn note_client(&self, root: &TaskId) -> bool {
        self.present().insert(root.clone())
    }

    /// Forgets a tree whose root has ended.
    pub(crate) fn forget(&self, root: &TaskId) {
        self.present().remove(root);
    }

    fn is_present(&self, root: &TaskId) -> bool {
        self.present().contains(root)
    }
}

/// Whether a task waits until its client follows it again.
pub(crate) fn is_held(services: &Arc<Services>, state: &TaskState) -> bool {
    let root = state.created.root.as_ref().unwrap_or(&state.task_id);
    if !state.created.followed || services.followed.is_present(root) {
        return false;
    }
    let Some(deadline) = limits::deadline(state) else { return true };
    let over = services.time.has_passed(deadline);
    if !over {
        deadlines::watch_task(services, deadline, state.task_id.clone());
    }
    !over
}

/// Lets a tree go on, because its client or a person says so.
pub(crate) async fn release(
    services: &Arc<Services>,
    root: &TaskId,
) -> Result<(), OrchestratorError> {
    let (created, _) = tree_usage::creation(root, &*services.deps.journal).await?;
    if !created.followed || !services.followed.note_client(root) {
        return Ok(());
    }
    let query = TaskQuery { which: TaskSelector::Tree(root.clone()), limit: TREE_TASKS_MAX };
    for task in services.deps.journal.tasks(query).await? {
        let waits = task.waiting_for.is_some_and(|what| !what.continues_by_itself());
        if !task.status.is_terminal() && !waits {
            supervise::start(services, &task.task_id);
        }
    }
    Ok(())
}

impl Orchestrator {
    /// Says that the client that created a task follows it again: it goes on.
    pub async fn client_follows(&self, task_id: &TaskId) -> Result<(), OrchestratorError> {
        let summary = self.services.reader.summary(task_id).await?;
        if summary.status.is_terminal() {
            return Ok(());
        }
        release(&self.services, &summary.root).await
    }
}
