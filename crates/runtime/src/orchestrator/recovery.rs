//! Recovery of the tasks that the process before left unfinished.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;

use antiphon_core::port::{ApprovalSelector, TaskQuery, TaskSelector};
use antiphon_core::{TaskId, TaskSummary};

use crate::inbox::lifecycle;
use crate::inbox::residents::{is_resident, is_untouched};
use crate::orchestrator::Orchestrator;
use crate::orchestrator_error::OrchestratorError;
use crate::task::control::cancel;
use crate::task::schedule::{deadlines, supervise};

/// Maximum number of tasks that recovery lists.
const RECOVERED_MAX: NonZeroUsize = NonZeroUsize::new(1_000_000).unwrap();

/// What [`Orchestrator::recover`] did with unfinished tasks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recovered {
    /// Tasks that were started again, oldest first.
    pub begun: Vec<TaskId>,
    /// Tasks that still wait for a user or a client.
    pub waiting: Vec<TaskId>,
    /// Tasks that were canceled because their parent had ended.
    pub ended: Vec<TaskId>,
}

impl Orchestrator {
    /// Starts every interrupted task and watches approvals that expire. Cancels tasks whose parent
    /// has ended.
    pub async fn recover(&self) -> Result<Recovered, OrchestratorError> {
        let query = TaskQuery { which: TaskSelector::Unfinished, limit: RECOVERED_MAX };
        let mut recovered = Recovered::default();
        let mut unfinished = self.services.deps.journal.tasks(query).await?;
        unfinished.reverse();
        let there: HashSet<TaskId> = unfinished.iter().map(|task| task.task_id.clone()).collect();
        let (orphans, unfinished): (Vec<_>, Vec<_>) = unfinished
            .into_iter()
            .partition(|task| task.parent.as_ref().is_some_and(|parent| !there.contains(parent)));
        recovered.ended = orphans.into_iter().map(|task| task.task_id).collect();
        cancel::cancel_all(&self.services, recovered.ended.clone()).await?;
        self.start_again(unfinished, &mut recovered).await?;
        for approval in self.approvals(ApprovalSelector::Pending).await? {
            if let Some(at) = approval.expires_at {
                if let Some(boot_until) = approval.boot_until {
                    self.services.time.know(at, boot_until);
                }
                deadlines::watch_approval(&self.services, at, approval.approval_id);
            }
        }
        Ok(recovered)
    }

    /// Starts the tasks that do not wait for a user or a client, and watches the time limits of the others.
    async fn start_again(
        &self,
        tasks: Vec<TaskSummary>,
        recovered: &mut Recovered,
    ) -> Result<(), OrchestratorError> {
        // A runner follows tasks that run elsewhere.
        // A resident agent answers the requests that wait for it.
        // A task that waits for budget or its model checks itself whether it may continue.
        let waits = |task: &TaskSummary| {
            let waits = task.waiting_for.is_some_and(|what| !what.continues_by_itself());
            waits && !is_resident(task)
        };
        let read = tasks.iter().filter(|task| is_resident(task) || waits(task));
        let read = read.map(|task| task.task_id.clone()).collect();
        let creations = self.services.reader.creations(read).await?;
        let mut live = HashMap::new();
        for task in tasks {
            let creation = creations.get(&task.task_id);
            if waits(&task) {
                if let Some((created, at)) = creation {
                    deadlines::watch_wall_clock_of(&self.services, &task.task_id, created, *at);
                }
                recovered.waiting.push(task.task_id);
                continue;
            }
            if let Some((created, _)) = creation {
                lifecycle::register_resident(&self.services, &task, created);
                live.insert(task.task_id.clone(), task.clone());
            }
            if is_untouched(&task) {
                // It stays a row until something arrives.
                continue;
            }
            supervise::start(&self.services, &task.task_id);
            recovered.begun.push(task.task_id);
        }
        lifecycle::notify_peers_again(&self.services, &live).await
    }
}
