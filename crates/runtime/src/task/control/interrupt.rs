//! Interrupts a task with all its descendants, and resumes them.
//!
//! An interrupted task waits for a person. Its descendants are interrupted with it: each records the task that a
//! person interrupted. A resume of that task, or of one below it, resumes them too, and no task that a person paused
//! or interrupted by itself.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use antiphon_core::{OutageWait, StatusChanged, TaskId, TaskStatus, TaskSummary, WaitingFor};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

use crate::deps::Dispatch;
use crate::orchestrator::Orchestrator;
use crate::orchestrator_error::OrchestratorError;
use crate::runner::followed;
use crate::task::control::cancel;

/// Code of a task whose turn was interrupted.
const INTERRUPTED: &str = "interrupted";

/// Field of the status of a descendant: the task above it that a person interrupted.
const WITH_TASK: &str = "with_task";

/// How long an interrupted run may take to stop.
const INTERRUPT_WAIT: Duration = Duration::from_secs(5);

/// Maximum number of tasks that are interrupted concurrently.
const INTERRUPTED_AT_ONCE: usize = 256;

impl Orchestrator {
    /// Interrupts the turn of a task and of all its descendants: their model calls and their running tools end, what
    /// there is of the answers is recorded, and they wait until a user resumes the task. When this returns, that is
    /// durable.
    pub async fn interrupt(&self, task_id: &TaskId) -> Result<(), OrchestratorError> {
        self.interrupt_one(task_id, interrupted_status()).await?;
        if self.services.deps.settings.dispatch == Dispatch::Parent {
            // The parent orchestrator has them.
            return Ok(());
        }
        let root = self.services.reader.summary(task_id).await?.root;
        let mut known = HashSet::new();
        loop {
            // One that was about to dispatch others may have done so before it stopped.
            let mut below =
                self.services.reader.descendants(std::slice::from_ref(task_id), &root).await?;
            below.retain(|task| !task.status.is_terminal() && known.insert(task.task_id.clone()));
            if below.is_empty() {
                return Ok(());
            }
            let interrupts = below.into_iter().map(|task| {
                let status = interrupted_with(task_id);
                async move { self.interrupt_one(&task.task_id, status).await }
            });
            let mut interrupts =
                std::pin::pin!(stream::iter(interrupts).buffer_unordered(INTERRUPTED_AT_ONCE));
            while let Some(interrupted) = interrupts.next().await {
                match interrupted {
                    Ok(()) | Err(OrchestratorError::Ended { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }

    async fn interrupt_one(
        &self,
        task_id: &TaskId,
        status: StatusChanged,
    ) -> Result<(), OrchestratorError> {
        if let Some(running) = self.services.slots.find(task_id) {
            running.interrupt.fire(status.clone());
            // A runner that does not stop does not keep the user waiting.
            let _ = tokio::time::timeout(INTERRUPT_WAIT, running.released.cancelled()).await;
        }
        self.amend(task_id, |summary, _| {
            let already = summary.waiting_for == Some(WaitingFor::Resume);
            Ok(if already { Vec::new() } else { vec![status.clone().into()] })
        })
        .await
    }

    /// Resumes a task that was interrupted or paused, and the descendants that were interrupted with it. Does nothing
    /// to a running task, except that a task that waits for its model or its peer tries again at once. A task that
    /// waits for budget is refused until more may be spent. An orchestrator that drains records it for the next one.
    pub async fn resume(&self, task_id: &TaskId) -> Result<(), OrchestratorError> {
        let state = self.task_alone(task_id).await?;
        self.services.check_model(&state)?;
        self.services.budget.check_wait(&state).await?;
        let root = self.services.reader.summary(task_id).await?.root;
        let tree = cancel::tree_without_orphans(&self.services, &root).await?;
        followed::release(&self.services, &root).await?;
        // Before the task itself: after a crash in between, a person resumes it again.
        for below in self.interrupted_with(task_id, &tree).await? {
            match self.resume_one(&below).await {
                Ok(()) | Err(OrchestratorError::Ended { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.resume_one(task_id).await
    }

    /// The descendants that a resume of the task resumes: those that were interrupted with it or with a task above it.
    async fn interrupted_with(
        &self,
        task_id: &TaskId,
        tree: &HashMap<TaskId, TaskSummary>,
    ) -> Result<Vec<TaskId>, OrchestratorError> {
        let mut interrupted = Vec::new();
        if self.services.deps.settings.dispatch == Dispatch::Parent {
            // The parent orchestrator has them.
            return Ok(interrupted);
        }
        for task in tree.values() {
            let waits = task.waiting_for == Some(WaitingFor::Resume);
            if !waits || !is_below(task_id, &task.task_id, tree) {
                continue;
            }
            let status = self.last_status(&task.task_id).await?;
            let with = status.as_ref().and_then(with_task);
            if with.is_some_and(|with| !is_below(task_id, &with, tree)) {
                interrupted.push(task.task_id.clone());
            }
        }
        Ok(interrupted)
    }

    async fn resume_one(&self, task_id: &TaskId) -> Result<(), OrchestratorError> {
        self.amend(task_id, |summary, state| {
            if let Some(wait) = summary.wait.clone()
                && summary.waiting_for == Some(WaitingFor::Peer)
            {
                let next_at = self.services.deps.clock.now();
                let now = OutageWait { next_at, ..wait };
                return Ok(vec![now.status(WaitingFor::Peer).into()]);
            }
            if !matches!(summary.waiting_for, Some(WaitingFor::Resume | WaitingFor::Model)) {
                return Ok(Vec::new());
            }
            let waits_for_approval =
                state.approvals.values().any(|question| question.answer.is_none());
            let change = if waits_for_approval {
                let waiting_for = Some(WaitingFor::Approval);
                StatusChanged { waiting_for, ..StatusChanged::new(TaskStatus::InputRequired) }
            } else {
                StatusChanged::new(TaskStatus::Running)
            };
            Ok(vec![change.into()])
        })
        .await
    }

    /// Whether a task works here that is neither this one nor one of its descendants: a model or a tool may run for it.
    /// One that cannot be read counts.
    pub async fn is_working_besides(&self, task_id: &TaskId) -> bool {
        let active = self.services.slots.active();
        if active.iter().all(|task| task == task_id) {
            return false;
        }
        let Ok(task) = self.services.reader.summary(task_id).await else { return true };
        let ids = std::slice::from_ref(task_id);
        let Ok(below) = self.services.reader.descendants(ids, &task.root).await else {
            return true;
        };
        let own: HashSet<&TaskId> = below.iter().map(|task| &task.task_id).collect();
        active.iter().any(|task| task != task_id && !own.contains(task))
    }
}

/// Whether a task is a descendant of another one.
fn is_below(above: &TaskId, task_id: &TaskId, tree: &HashMap<TaskId, TaskSummary>) -> bool {
    let parent = |task_id: &TaskId| tree.get(task_id).and_then(|task| task.parent.clone());
    let mut next = parent(task_id);
    // A journal from elsewhere may hold a circle.
    for _ in 0..tree.len() {
        match next {
            Some(found) if found == *above => return true,
            Some(found) => next = parent(&found),
            None => return false,
        }
    }
    false
}

/// The status of a task whose turn a person interrupted.
fn interrupted_status() -> StatusChanged {
    waits_for_person(json!({ "code": INTERRUPTED, "error": "a person interrupted the turn" }))
}

/// The status of a task that was interrupted with a task above it.
fn interrupted_with(above: &TaskId) -> StatusChanged {
    let error = format!("a person interrupted task {above} above it");
    waits_for_person(json!({ "code": INTERRUPTED, "error": error, WITH_TASK: above }))
}

fn waits_for_person(detail: Value) -> StatusChanged {
    let (status, waiting_for) = (TaskStatus::InputRequired, Some(WaitingFor::Resume));
    StatusChanged { status, detail: Some(detail), waiting_for }
}

/// Whether a status says with which task a task was interrupted, and the recorded one does not: the runner of the task
/// does not know.
pub(crate) fn names_more(status: &StatusChanged, recorded: Option<&Value>) -> bool {
    let is_same = recorded.is_some_and(|recorded| recorded["code"] == INTERRUPTED);
    is_same && recorded.is_some_and(|it| it.get(WITH_TASK).is_none()) && with_task(status).is_some()
}

/// The task with which a task was interrupted.
fn with_task(status: &StatusChanged) -> Option<TaskId> {
    let detail = status.detail.as_ref()?;
    serde_json::from_value(detail.get(WITH_TASK)?.clone()).ok()
}
