//! Cancels tasks: one, or one with all its descendants.
//!
//! A running task cancels itself; a task that does not run is canceled here. Descendants are canceled
//! after their ancestor, which can dispatch no more then. After a crash in between, recovery cancels
//! the rest.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_core::{EventBody, Replied, StatusChanged, TaskId, TaskStatus, TaskSummary};
use futures_util::{StreamExt, stream};

use crate::budget::tree;
use crate::deps::Dispatch;
use crate::inbox::residents::{self, is_resident};
use crate::orchestrator_error::OrchestratorError;
use crate::services::Inner;
use crate::task::run_slots;

/// Maximum number of tasks that are canceled concurrently.
const CANCELED_AT_ONCE: usize = 256;

impl Inner {
    /// Cancels tasks and their descendants. When this returns, it is durable.
    pub(crate) async fn cancel_all(
        self: &Arc<Self>,
        tasks: Vec<TaskId>,
    ) -> Result<(), OrchestratorError> {
        let mut roots: HashMap<TaskId, Vec<TaskId>> = HashMap::new();
        for task_id in &tasks {
            let root = self.summary(task_id).await?.root;
            roots.entry(root).or_default().push(task_id.clone());
        }
        self.cancel_each(tasks).await?;
        for (root, tops) in roots {
            self.cancel_below_all(&tops, &root).await?;
        }
        Ok(())
    }

    /// Cancels all descendants of a task that can dispatch no more.
    pub(crate) async fn cancel_below(
        self: &Arc<Self>,
        task_id: &TaskId,
    ) -> Result<(), OrchestratorError> {
        let root = self.summary(task_id).await?.root;
        self.cancel_below_all(std::slice::from_ref(task_id), &root).await
    }

    async fn cancel_below_all(
        self: &Arc<Self>,
        tops: &[TaskId],
        root: &TaskId,
    ) -> Result<(), OrchestratorError> {
        loop {
            let mut below = self.below(tops, root).await?;
            below.retain(|task| !task.status.is_terminal());
            if below.is_empty() {
                return Ok(());
            }
            self.cancel_each(below.into_iter().map(|task| task.task_id).collect()).await?;
        }
    }

    async fn cancel_each(self: &Arc<Self>, tasks: Vec<TaskId>) -> Result<(), OrchestratorError> {
        let ends = tasks.into_iter().map(|task_id| {
            let inner = Arc::clone(self);
            async move { inner.cancel_one(&task_id).await }
        });
        let mut ends = std::pin::pin!(stream::iter(ends).buffer_unordered(CANCELED_AT_ONCE));
        while let Some(ended) = ends.next().await {
            ended?;
        }
        Ok(())
    }

    /// The tasks of a tree, by id. First cancels unfinished descendants of ended tasks: the process
    /// that ended those may have died before it got there.
    pub(crate) async fn tree_without_orphans(
        self: &Arc<Self>,
        root: &TaskId,
    ) -> Result<HashMap<TaskId, TaskSummary>, OrchestratorError> {
        let query =
            TaskQuery { which: TaskSelector::Tree(root.clone()), limit: tree::TREE_TASKS_MAX };
        let tasks = self.world.journal.tasks(query).await?;
        let there: HashMap<TaskId, TaskSummary> =
            tasks.into_iter().map(|task| (task.task_id.clone(), task)).collect();
        let ended = |task: &TaskId| there.get(task).is_some_and(|task| task.status.is_terminal());
        let orphans = there
            .values()
            .filter(|task| !task.status.is_terminal() && task.parent.as_ref().is_some_and(ended));
        self.cancel_all(orphans.map(|task| task.task_id.clone()).collect()).await?;
        Ok(there)
    }

    /// All descendants of these tasks of a tree, oldest first.
    pub(crate) async fn below(
        &self,
        tops: &[TaskId],
        root: &TaskId,
    ) -> Result<Vec<TaskSummary>, OrchestratorError> {
        let query =
            TaskQuery { which: TaskSelector::Tree(root.clone()), limit: tree::TREE_TASKS_MAX };
        let tasks = self.world.journal.tasks(query).await?;
        let inside: HashSet<TaskId> = tree::descent(tops, &tasks).into_iter().cloned().collect();
        let tops: HashSet<&TaskId> = tops.iter().collect();
        let mut below: Vec<TaskSummary> = tasks
            .into_iter()
            .filter(|task| inside.contains(&task.task_id) && !tops.contains(&task.task_id))
            .collect();
        below.reverse();
        Ok(below)
    }

    /// Cancels one task, unless it has ended.
    pub(crate) async fn cancel_one(
        self: &Arc<Self>,
        task_id: &TaskId,
    ) -> Result<(), OrchestratorError> {
        match self.cancel(task_id).await {
            Ok(()) | Err(OrchestratorError::Ended { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Cancels one task: its model call, its tools, and itself.
    pub(crate) async fn cancel(
        self: &Arc<Self>,
        task_id: &TaskId,
    ) -> Result<(), OrchestratorError> {
        let mut asked = false;
        if self.places.find(task_id).is_none() && self.is_followed(task_id).await? {
            // The run here forwards the cancellation to the other orchestrator.
            run_slots::start(self, task_id);
        }
        loop {
            if let Some(running) = self.places.find(task_id) {
                running.cancel.cancel();
                running.left.cancelled().await;
                asked = true;
                continue;
            }
            let summary = self.summary(task_id).await?;
            if asked && summary.status == TaskStatus::Canceled {
                return Ok(());
            }
            if summary.status.is_terminal() {
                let (task_id, status) = (task_id.clone(), summary.status);
                return Err(OrchestratorError::Ended { task_id, status });
            }
            if self.end_at_rest(summary).await? {
                // A run may have started just then, with the old state.
                if let Some(running) = self.places.find(task_id) {
                    running.cancel.cancel();
                    running.left.cancelled().await;
                }
                self.world.tools.release(task_id).await;
                return Ok(());
            }
        }
    }

    /// Cancels a task that does not run, after its last known event. Returns false when another writer
    /// was first.
    async fn end_at_rest(
        self: &Arc<Self>,
        summary: TaskSummary,
    ) -> Result<bool, OrchestratorError> {
        let last = self.last_words(&summary).await?;
        let inner = Arc::clone(self);
        // On a future of its own: the caller may stop waiting, but the replies must be delivered.
        self.owned(async move {
            let mut canceled: Vec<EventBody> = last.iter().cloned().map(EventBody::from).collect();
            canceled.push(StatusChanged::new(TaskStatus::Canceled).into());
            if !inner.append_behind(&summary, canceled).await? {
                return Ok(false);
            }
            inner.take_prepared(&summary.task_id);
            for replied in &last {
                inner.deliver(&summary.agent, replied).await?;
            }
            Ok(true)
        })
        .await
    }

    /// The replies that a task records before it is canceled.
    async fn last_words(&self, summary: &TaskSummary) -> Result<Vec<Replied>, OrchestratorError> {
        // The parent orchestrator answers open requests in that case.
        if !is_resident(summary) || self.world.settings.dispatch == Dispatch::Above {
            return Ok(Vec::new());
        }
        let state = self.load(&summary.task_id).await?;
        Ok(residents::last_answers(&state, TaskStatus::Canceled))
    }

    /// Whether another orchestrator runs a task that has not ended.
    async fn is_followed(&self, task_id: &TaskId) -> Result<bool, OrchestratorError> {
        if self.world.runners.is_empty() || self.summary(task_id).await?.status.is_terminal() {
            return Ok(false);
        }
        let (created, _) = tree::beginning(task_id, &*self.world.journal).await?;
        Ok(self.is_orchestrated(created.runner.as_ref()))
    }
}
