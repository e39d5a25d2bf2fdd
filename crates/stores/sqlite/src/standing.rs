//! Where tasks stand that are worked on, kept at hand by the one who writes.
//!
//! Nobody else writes, so what is here is what is in the file, up to the transaction that is being
//! written. When that one fails, everything here is dropped and read again.

use std::collections::HashMap;

use antiphon_core::port::TaskHead;
use antiphon_core::{AgentStatus, EventBody, LiveAgent, Seq, SpendingFold, TaskId, TaskSummary};
use chrono::{DateTime, Utc};

/// Most tasks at hand, of about half a kilobyte each. One more, and all are dropped: those that
/// are still worked on come back with their next append, for the price of a look at the file.
pub const TASKS_AT_HAND_MAX: usize = 4096;

/// What is needed of a task to add to it.
#[derive(Debug)]
pub(crate) struct TaskHeadCache {
    /// Its number in the file.
    pub(crate) row: i64,
    /// `preview` and `spent` are what has to be written, not what the file has already.
    pub(crate) summary: TaskSummary,
    /// Its last event that is more than an arrival.
    settled: Seq,
    pub(crate) agent: Option<AgentStatus>,
    /// The agent has to be written.
    pub(crate) agent_moved: bool,
    /// What was spent and allowed, and has to be written.
    pub(crate) spending: SpendingFold,
    pub(crate) beside: Beside,
}

/// What the file may have of a task beside its row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Beside {
    pub(crate) agent: bool,
    pub(crate) usage: bool,
    pub(crate) messages: bool,
}

impl Beside {
    const NOTHING: Self = Self { agent: false, usage: false, messages: false };
    const ANYTHING: Self = Self { agent: true, usage: true, messages: true };
}

impl TaskHeadCache {
    /// Of a task that is new.
    pub(crate) fn new(row: i64, summary: TaskSummary) -> Self {
        let settled = summary.seq;
        Self { beside: Beside::NOTHING, ..Self::of(row, summary, settled, None) }
    }

    /// Of a task that the file has.
    pub(crate) fn of(
        row: i64,
        summary: TaskSummary,
        settled: Seq,
        agent: Option<AgentStatus>,
    ) -> Self {
        Self {
            row,
            summary,
            settled,
            agent,
            agent_moved: false,
            spending: SpendingFold::default(),
            beside: Beside::ANYTHING,
        }
    }

    /// Adds what happened next.
    pub(crate) fn apply(&mut self, body: &EventBody, at: DateTime<Utc>) {
        self.summary.apply(body, at);
        self.spending.apply(&self.summary, body, at);
        if !body.is_arrival() {
            self.settled = self.summary.seq;
        }
        if let EventBody::StateChanged(change) = body {
            self.agent = Some(LiveAgent::moved(self.agent.take(), change, at));
            self.agent_moved = true;
        }
        if body.ends_task() {
            self.agent = None;
        }
    }

    pub(crate) fn head(&self) -> TaskHead {
        let ended = self.summary.status.is_terminal();
        TaskHead { seq: self.summary.seq, settled: self.settled, ended }
    }
}

/// Tasks at hand, none of which has ended.
#[derive(Debug, Default)]
pub(crate) struct Standings {
    tasks: HashMap<TaskId, TaskHeadCache>,
    /// The number of the next task, once one was created.
    pub(crate) next_row: Option<i64>,
}

impl Standings {
    /// Before a transaction with that many appends.
    pub(crate) fn make_room(&mut self, appends: usize) {
        if self.tasks.len() + appends > TASKS_AT_HAND_MAX {
            self.tasks.clear();
        }
    }

    pub(crate) fn get(&self, task_id: &TaskId) -> Option<&TaskHeadCache> {
        self.tasks.get(task_id)
    }

    pub(crate) fn get_mut(&mut self, task_id: &TaskId) -> Option<&mut TaskHeadCache> {
        self.tasks.get_mut(task_id)
    }

    pub(crate) fn insert(&mut self, standing: TaskHeadCache) {
        self.tasks.insert(standing.summary.task_id.clone(), standing);
    }

    pub(crate) fn remove(&mut self, task_id: &TaskId) {
        self.tasks.remove(task_id);
    }

    pub(crate) fn forget(&mut self) {
        self.next_row = None;
        self.tasks.clear();
    }
}
