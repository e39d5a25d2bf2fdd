//! The tasks of a tree, from one of them downward, and what they spent together.
//!
//! A tree is built from task summaries and updated with events in any order: an event it has seen
//! changes nothing. A task comes after the task that dispatched it, so no journal can cause
//! a cycle. Tasks beyond [`TASKS_MAX`] are left out and counted.

mod drawing;
mod json;
mod task;

use std::collections::HashMap;
use std::num::NonZeroUsize;

use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_core::{
    Cost, Event, EventBody, OutageWait, PriceTable, Relayed, TaskId, TaskSummary, TokenUsage, Usage,
};

pub use drawing::{Collapse, DisplayStatus, LastColumn, TreeDrawing, change_line, shown_tasks};
pub use json::{TaskRow, TreeNode};
pub use task::{TaskDetail, TreeTask};

/// Tasks a tree holds at most.
pub const TASKS_MAX: usize = 100_000;

/// One task and all its descendants.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskTree {
    tasks: Vec<TreeTask>,
    index: HashMap<TaskId, usize>,
    left_out: usize,
}

/// What one or more tasks spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeTotals {
    /// How many tasks are counted.
    pub tasks: usize,
    /// Tokens of all models together.
    pub usage: Usage,
    /// Absent when a model has no known price.
    pub cost: Option<Cost>,
}

impl TaskTree {
    /// The journal query for all tasks of a tree. It asks for one more than [`TASKS_MAX`], so that a
    /// larger tree is noticed.
    pub fn query(root: &TaskId) -> TaskQuery {
        let limit = NonZeroUsize::MIN.saturating_add(TASKS_MAX);
        TaskQuery { which: TaskSelector::Tree(root.clone()), limit }
    }

    /// `top` and its descendants, from the summaries of its whole tree in the order of a journal: the
    /// newest first. `None` when `top` is not among them.
    pub fn new(top: &TaskId, summaries: Vec<TaskSummary>) -> Option<Self> {
        let index = HashMap::with_capacity(summaries.len());
        let mut tree = Self { tasks: Vec::new(), index, left_out: 0 };
        for summary in summaries.into_iter().rev() {
            if summary.task_id == *top {
                tree.add(summary, None, None);
            } else if let Some(parent) = tree.position(summary.parent.as_ref()) {
                tree.add(summary, Some(parent), None);
            }
        }
        (!tree.tasks.is_empty()).then_some(tree)
    }

    /// The top first, and every task behind the one that dispatched it. Never empty.
    pub fn tasks(&self) -> &[TreeTask] {
        &self.tasks
    }

    /// The task at the top.
    pub fn top(&self) -> &TreeTask {
        &self.tasks[0]
    }

    /// How many tasks were left out because of [`TASKS_MAX`].
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// Sets the detail of the task at this index of [`tasks`](Self::tasks).
    pub fn set_detail(&mut self, index: usize, detail: TaskDetail) {
        self.tasks[index].detail = Some(detail);
    }

    /// Sets which tasks wait until the journal can be written, which no event says. Returns the indexes of those that
    /// began or ended to wait.
    pub fn set_storage_waits(&mut self, waits: &HashMap<TaskId, OutageWait>) -> Vec<usize> {
        let changed = self.tasks.iter_mut().enumerate().filter_map(|(index, task)| {
            let wait = waits.get(&task.summary.task_id);
            task.set_storage_wait(wait).then_some(index)
        });
        changed.collect()
    }

    /// Applies an event. Returns the index of the task it changed; `None` when the event is not of this
    /// tree or was seen before.
    pub fn apply(&mut self, event: &Event) -> Option<usize> {
        if let Some(&index) = self.index.get(&event.task_id) {
            if let EventBody::Relayed(relayed) = &event.body {
                self.add_peer_tasks(index, relayed);
            }
            return self.tasks[index].apply(event).then_some(index);
        }
        let EventBody::TaskCreated(created) = &event.body else { return None };
        let parent = self.position(created.parent.as_ref())?;
        let summary = TaskSummary::created(event.task_id.clone(), created, event.at);
        self.add(summary, Some(parent), Some(TaskDetail::created(created)))
    }

    /// What each task spent together with its descendants, in the order of [`tasks`](Self::tasks).
    pub fn totals(&self, prices: &PriceTable) -> Vec<TreeTotals> {
        let own = |task: &TreeTask| TreeTotals::of(&task.summary, prices);
        let mut totals: Vec<TreeTotals> = self.tasks.iter().map(own).collect();
        for (index, task) in self.tasks.iter().enumerate().rev() {
            if let Some(parent) = task.parent {
                totals[parent] = totals[parent].and(totals[index]);
            }
        }
        totals
    }

    /// Adds or replaces the tasks on the peer of the task at this index.
    fn add_peer_tasks(&mut self, index: usize, relayed: &Relayed) {
        for task in &relayed.tasks {
            let task = task.clone().at_peer_of(&self.tasks[index].summary, &relayed.task_id);
            match self.index.get(&task.task_id) {
                Some(known)
                    if self.tasks[*known].summary.runs_on.peer.is_some() && *known != index =>
                {
                    self.tasks[*known].summary = task;
                }
                // An id of a task here is not a peer's to use.
                Some(_) => {}
                None => {
                    if let Some(parent) = self.position(task.parent.as_ref()) {
                        self.add(task, Some(parent), None);
                    }
                }
            }
        }
    }

    fn position(&self, task_id: Option<&TaskId>) -> Option<usize> {
        self.index.get(task_id?).copied()
    }

    fn add(
        &mut self,
        summary: TaskSummary,
        parent: Option<usize>,
        detail: Option<TaskDetail>,
    ) -> Option<usize> {
        if self.tasks.len() >= TASKS_MAX {
            self.left_out += 1;
            return None;
        }
        let new = self.tasks.len();
        self.index.insert(summary.task_id.clone(), new);
        let depth = parent.map_or(0, |parent| self.tasks[parent].depth + 1);
        if let Some(parent) = parent {
            self.tasks[parent].children.push(new);
        }
        self.tasks.push(TreeTask {
            summary,
            parent,
            depth,
            children: Vec::new(),
            detail,
            storage_wait: None,
        });
        Some(new)
    }
}

impl TreeTotals {
    /// What one task spent itself, without its descendants.
    pub fn of(task: &TaskSummary, prices: &PriceTable) -> Self {
        let cost = antiphon_runtime::cost(&task.spent, prices).ok();
        Self { tasks: 1, usage: task.usage(), cost }
    }

    /// The totals of no task.
    pub fn zero() -> Self {
        Self { tasks: 0, usage: Usage::default(), cost: Some(Cost::default()) }
    }

    /// The sum of both. Its cost is unknown when one of them is.
    pub fn and(self, other: Self) -> Self {
        let mut usage = self.usage;
        usage += other.usage;
        let cost = self.cost.zip(other.cost).map(|(one, other)| one + other);
        Self { tasks: self.tasks + other.tasks, usage, cost }
    }

    /// Tokens, read and written.
    pub fn tokens(&self) -> u32 {
        TokenUsage::from(self.usage).total_tokens
    }
}
