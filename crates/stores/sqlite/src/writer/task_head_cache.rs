//! The writer's cache of tasks that have not ended.
//!
//! Only the writer writes, so the cache equals the file, plus the current transaction.
//! When that fails, the cache is cleared.

use std::collections::HashMap;

use antiphon_core::port::TaskHead;
use antiphon_core::{AgentStatus, EventBody, LiveAgent, Seq, SpendingFold, TaskId, TaskSummary};
use chrono::{DateTime, Utc};

/// Most cached tasks, of about half a kilobyte each. One more clears the cache: active tasks
/// return with their next append, for the price of one read.
pub const CACHED_TASKS_MAX: usize = 4096;

/// A task in the cache: what the next append needs.
#[derive(Debug)]
pub(crate) struct CachedTask {
    /// Row number of the task.
    pub(crate) row: i64,
    /// `preview` holds only what must still be written.
    pub(crate) summary: TaskSummary,
    /// Seq of the last event that is not an arrival.
    settled: Seq,
    pub(crate) agent: Option<AgentStatus>,
    pub(crate) related: RelatedRows,
}

/// Whether other tables may have rows of the task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RelatedRows {
    pub(crate) messages: bool,
    pub(crate) checkpoint: bool,
}

impl RelatedRows {
    const NONE: Self = Self { messages: false, checkpoint: false };
    const POSSIBLE: Self = Self { messages: true, checkpoint: true };
}

impl CachedTask {
    /// A new task.
    pub(crate) fn new(row: i64, summary: TaskSummary) -> Self {
        let settled = summary.seq;
        Self { related: RelatedRows::NONE, ..Self::of(row, summary, settled, None) }
    }

    /// A task of the file.
    pub(crate) fn of(
        row: i64,
        summary: TaskSummary,
        settled: Seq,
        agent: Option<AgentStatus>,
    ) -> Self {
        Self { row, summary, settled, agent, related: RelatedRows::POSSIBLE }
    }

    /// Applies the next event. What it spends is added to `spending`.
    pub(crate) fn apply(
        &mut self,
        body: &EventBody,
        at: DateTime<Utc>,
        spending: &mut SpendingFold,
    ) {
        self.summary.apply(body, at);
        spending.apply(&self.summary, body, at);
        if !body.is_arrival() {
            self.settled = self.summary.seq;
        }
        self.agent = LiveAgent::after(self.agent.take(), body, at);
    }

    pub(crate) fn head(&self) -> TaskHead {
        let ended = self.summary.status.is_terminal();
        TaskHead { seq: self.summary.seq, settled: self.settled, ended }
    }
}

/// Cached tasks, none of which has ended.
#[derive(Debug, Default)]
pub(crate) struct TaskHeadCache {
    tasks: HashMap<TaskId, CachedTask>,
    /// Row number of the next task, once known.
    pub(crate) next_row: Option<i64>,
}

impl TaskHeadCache {
    /// Clears the cache if a transaction with that many appends could exceed its limit.
    pub(crate) fn make_room(&mut self, appends: usize) {
        if self.tasks.len() + appends > CACHED_TASKS_MAX {
            self.tasks.clear();
        }
    }

    pub(crate) fn get(&self, task_id: &TaskId) -> Option<&CachedTask> {
        self.tasks.get(task_id)
    }

    pub(crate) fn get_mut(&mut self, task_id: &TaskId) -> Option<&mut CachedTask> {
        self.tasks.get_mut(task_id)
    }

    pub(crate) fn insert(&mut self, cached: CachedTask) {
        self.tasks.insert(cached.summary.task_id.clone(), cached);
    }

    pub(crate) fn remove(&mut self, task_id: &TaskId) {
        self.tasks.remove(task_id);
    }

    pub(crate) fn forget(&mut self) {
        self.next_row = None;
        self.tasks.clear();
    }
}
