//! Rebuilds tasks from the journal: states, summaries, creations, trees. Writes nothing.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::Arc;

use antiphon_core::port::{Journal, Read, TaskQuery, TaskSelector};
use antiphon_core::{Event, EventBody, HistoryRef, Position, TaskId, TaskSummary};

use crate::budget::tree_usage;
use crate::dispatch::pending_call::Outcome;
use crate::orchestrator_error::OrchestratorError;
use crate::task::state::conversation::Conversation;
use crate::task::state::{ReplayError, TaskState};

/// Maximum number of tasks that one conversation history spans.
pub(crate) const HISTORY_TASKS_MAX: usize = 10_000;

/// Maximum number of ancestors that are followed.
pub(crate) const DEPTH_MAX: usize = 1024;

/// Reads tasks from the journal.
pub(crate) struct TaskReader {
    pub(crate) journal: Arc<dyn Journal>,
}

impl TaskReader {
    /// Reads a task, after the conversation of the tasks it continues.
    pub(crate) async fn load(&self, task_id: &TaskId) -> Result<TaskState, OrchestratorError> {
        let mut chapters = vec![(task_id.clone(), self.events(task_id).await?)];
        while let Some(HistoryRef { task_id: before, seq }) = history(&chapters) {
            if chapters.len() == HISTORY_TASKS_MAX {
                return Err(ReplayError::TooDeep { task_id: task_id.clone() }.into());
            }
            let mut events = self.events(&before).await?;
            events.retain(|event| event.seq <= seq);
            chapters.push((before, events));
        }
        let mut before = Conversation::default();
        while let Some((task_id, events)) = chapters.pop() {
            let state = TaskState::replay(&task_id, before, &events)?;
            if chapters.is_empty() {
                return Ok(state);
            }
            before = state.conversation;
        }
        Err(ReplayError::NoTask { task_id: task_id.clone() }.into())
    }

    async fn events(&self, task_id: &TaskId) -> Result<Vec<Event>, OrchestratorError> {
        let mut events = Vec::new();
        let mut after = Position(0);
        loop {
            let read = Read { task_id: Some(task_id.clone()), after, limit: NonZeroUsize::MAX };
            let page = self.journal.read(read).await?;
            if page.events.is_empty() {
                return Ok(events);
            }
            after = page.next;
            events.extend(page.events);
        }
    }

    /// Applies the events written since the last read. Returns false when they do not fit the
    /// state.
    pub(crate) async fn catch_up(&self, state: &mut TaskState) -> Result<bool, OrchestratorError> {
        loop {
            let (task_id, after) = (Some(state.task_id.clone()), state.position);
            let read = Read { task_id, after, limit: NonZeroUsize::MAX };
            let page = self.journal.read(read).await?;
            if page.events.is_empty() {
                return Ok(true);
            }
            if !page.events.iter().all(|event| state.follow(event)) {
                return Ok(false);
            }
        }
    }

    /// The summary of a task; an error when there is no such task.
    pub(crate) async fn summary(&self, task_id: &TaskId) -> Result<TaskSummary, OrchestratorError> {
        let query =
            TaskQuery { which: TaskSelector::One(task_id.clone()), limit: NonZeroUsize::MIN };
        let found = self.journal.tasks(query).await?.into_iter().next();
        Ok(found.ok_or_else(|| ReplayError::NoTask { task_id: task_id.clone() })?)
    }

    /// The summary of a task that has not ended; otherwise [`OrchestratorError::Ended`].
    pub(crate) async fn unfinished(
        &self,
        task_id: &TaskId,
    ) -> Result<TaskSummary, OrchestratorError> {
        let summary = self.summary(task_id).await?;
        if summary.status.is_terminal() {
            let (task_id, status) = (task_id.clone(), summary.status);
            return Err(OrchestratorError::Ended { task_id, status });
        }
        Ok(summary)
    }

    /// How a task that has ended did.
    pub(crate) async fn outcome(&self, task: &TaskSummary) -> Result<Outcome, OrchestratorError> {
        let state = self.load(&task.task_id).await?;
        let ended_at = task.ended_at.unwrap_or(task.last_event_at);
        Ok(Outcome::of_status(state.status, state.detail.as_ref(), ended_at))
    }

    /// All descendants of these tasks of a tree, oldest first.
    pub(crate) async fn descendants(
        &self,
        ancestors: &[TaskId],
        root: &TaskId,
    ) -> Result<Vec<TaskSummary>, OrchestratorError> {
        let query = TaskQuery {
            which: TaskSelector::Tree(root.clone()),
            limit: tree_usage::TREE_TASKS_MAX,
        };
        let tasks = self.journal.tasks(query).await?;
        let inside: HashSet<TaskId> =
            tree_usage::subtree_ids(ancestors, &tasks).into_iter().cloned().collect();
        let ancestors: HashSet<&TaskId> = ancestors.iter().collect();
        let mut descendants: Vec<TaskSummary> = tasks
            .into_iter()
            .filter(|task| inside.contains(&task.task_id) && !ancestors.contains(&task.task_id))
            .collect();
        descendants.reverse();
        Ok(descendants)
    }
}

/// The history that the oldest of these tasks continues.
fn history(chapters: &[(TaskId, Vec<Event>)]) -> Option<HistoryRef> {
    let (_, events) = chapters.last()?;
    let EventBody::TaskCreated(created) = &events.first()?.body else { return None };
    created.history.clone()
}
