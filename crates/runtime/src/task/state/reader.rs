//! Rebuilds tasks from the journal: states, summaries, creations, trees. Writes nothing.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;
use std::sync::Arc;

use antiphon_core::port::{HistoryExtent, Journal, Page, Read, TaskQuery, TaskSelector};
use antiphon_core::{Event, EventBody, HistoryRef, Position, TaskCreated, TaskId, TaskSummary};
use chrono::{DateTime, Utc};

use crate::budget::tree_usage;
use crate::dispatch::pending_call::TaskOutcome;
use crate::orchestrator_error::OrchestratorError;
use crate::task::state::checkpoint::{CHECKPOINT_EVENTS, SavedState};
use crate::task::state::conversation::Conversation;
use crate::task::state::conversation_cache::ConversationCache;
use crate::task::state::{ReplayError, TaskState};

/// Maximum number of ancestors that are followed.
pub(crate) const DEPTH_MAX: usize = 1024;

/// Reads tasks from the journal.
pub(crate) struct TaskReader {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) conversations: ConversationCache,
}

/// How much of the conversation before a task is read with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Before {
    /// Every message.
    All,
    /// What the task goes on with.
    Recent,
    /// Nothing, and of a long task no messages of its own either: the caller needs none.
    NoMessages,
}

impl TaskReader {
    /// Reads a task with what it needs to go on.
    pub(crate) async fn load(&self, task_id: &TaskId) -> Result<TaskState, OrchestratorError> {
        self.load_with(task_id, Before::Recent).await
    }

    /// Reads a task for a caller that needs no messages.
    pub(crate) async fn load_without_messages(
        &self,
        task_id: &TaskId,
    ) -> Result<TaskState, OrchestratorError> {
        self.load_with(task_id, Before::NoMessages).await
    }

    /// Reads a task with the conversation before it.
    pub(crate) async fn load_with(
        &self,
        task_id: &TaskId,
        before: Before,
    ) -> Result<TaskState, OrchestratorError> {
        let read =
            Read { task_id: Some(task_id.clone()), after: Position(0), limit: CHECKPOINT_EVENTS };
        let first = self.journal.read(read).await?;
        let (is_last, after, mut events) = (is_last(&first), first.next, first.events);
        if !is_last {
            if events.len() == CHECKPOINT_EVENTS.get()
                // Few tasks are that long: its future is not part of every other.
                && let Some(state) = Box::pin(self.load_checkpoint(task_id, before)).await?
            {
                return Ok(state);
            }
            events.extend(self.events_after(task_id, after).await?);
        }
        let history = match events.first().map(|event| &event.body) {
            Some(EventBody::TaskCreated(created)) => created.history.clone(),
            Some(_) | None => None,
        };
        let conversation = match history {
            Some(history) => self.conversation(history, before).await?,
            None => Conversation::default(),
        };
        Ok(TaskState::replay(task_id, conversation, &events)?)
    }

    /// The conversation up to an event.
    async fn conversation(
        &self,
        until: HistoryRef,
        before: Before,
    ) -> Result<Conversation, OrchestratorError> {
        let extent = match before {
            Before::NoMessages => return Ok(Conversation::default()),
            Before::All => HistoryExtent::All,
            Before::Recent => HistoryExtent::Recent,
        };
        if let Some(found) = self.conversations.find(&until)
            && (before == Before::Recent || found.first() == 0)
        {
            return Ok(found);
        }
        let read = self.read_history(until.clone(), extent).await?;
        self.conversations.insert(until, read.clone(), None);
        Ok(read)
    }

    async fn read_history(
        &self,
        until: HistoryRef,
        extent: HistoryExtent,
    ) -> Result<Conversation, OrchestratorError> {
        Ok(Conversation::of(self.journal.history(until, extent).await?))
    }

    /// The state at the last checkpoint, with the events since. `None`: the whole task has to be read.
    async fn load_checkpoint(
        &self,
        task_id: &TaskId,
        before: Before,
    ) -> Result<Option<TaskState>, OrchestratorError> {
        let Some(checkpoint) = self.journal.checkpoint(task_id).await? else { return Ok(None) };
        let until = HistoryRef { task_id: task_id.clone(), seq: checkpoint.seq };
        let Some(saved) = SavedState::read(&checkpoint) else { return Ok(None) };
        let at = (checkpoint.seq, saved.messages());
        let state = match before {
            Before::NoMessages => Some(saved.without_messages()),
            Before::Recent if let Some(kept) = self.conversations.beginning(task_id, at) => {
                saved.with(kept)
            }
            Before::Recent => saved.with(self.read_history(until, HistoryExtent::Recent).await?),
            Before::All => saved.with(self.read_history(until, HistoryExtent::All).await?),
        };
        let Some(mut state) = state else { return Ok(None) };
        Ok(self.catch_up(&mut state).await?.then_some(state))
    }

    async fn events_after(
        &self,
        task_id: &TaskId,
        mut after: Position,
    ) -> Result<Vec<Event>, OrchestratorError> {
        let mut events = Vec::new();
        loop {
            let read = Read { task_id: Some(task_id.clone()), after, limit: NonZeroUsize::MAX };
            let page = self.journal.read(read).await?;
            let is_last = is_last(&page);
            after = page.next;
            events.extend(page.events);
            if is_last {
                return Ok(events);
            }
        }
    }

    /// Applies the events written since the last read. Returns false when they do not fit the
    /// state.
    pub(crate) async fn catch_up(&self, state: &mut TaskState) -> Result<bool, OrchestratorError> {
        loop {
            let (task_id, after) = (Some(state.task_id.clone()), state.position);
            let read = Read { task_id, after, limit: NonZeroUsize::MAX };
            let page = self.journal.read(read).await?;
            if !page.events.iter().all(|event| state.follow(event)) {
                return Ok(false);
            }
            if is_last(&page) {
                return Ok(true);
            }
        }
    }

    /// The creations of these tasks, and their times. One read.
    pub(crate) async fn creations(
        &self,
        tasks: Vec<TaskId>,
    ) -> Result<HashMap<TaskId, (TaskCreated, DateTime<Utc>)>, OrchestratorError> {
        let mut creations = HashMap::new();
        for Event { task_id, seq, at, body, .. } in self.journal.first_events(tasks).await? {
            let EventBody::TaskCreated(created) = body else {
                return Err(ReplayError::OutOfOrder { task_id, seq }.into());
            };
            creations.insert(task_id, (created, at));
        }
        Ok(creations)
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
    pub(crate) async fn outcome(
        &self,
        task: &TaskSummary,
    ) -> Result<TaskOutcome, OrchestratorError> {
        let last = self.journal.last_status(&task.task_id).await?;
        let ended_at = task.ended_at.unwrap_or(task.last_event_at);
        let detail = last.and_then(|last| last.detail);
        Ok(TaskOutcome::of_status(task.status, detail.as_ref(), ended_at))
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

/// Whether no event of the task can follow a page: it ends with the end of the task, or with the last event of the journal.
fn is_last(page: &Page) -> bool {
    page.events.last().is_none_or(|last| last.body.ends_task()) || page.next >= page.head
}
