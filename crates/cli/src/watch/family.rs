//! The tasks of a tree, from one of them downward, and what they took together.
//!
//! It is made from summaries and kept up to date with events, in any order of arrival: what is in it
//! already changes nothing. A task is behind the one that dispatched it, so there is no cycle,
//! whatever the journal says. Tasks beyond [`TASKS_MAX`] are left out and counted.

use std::collections::HashMap;
use std::num::NonZeroUsize;

use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_core::{Cost, Event, EventBody, PriceTable, TaskId, TaskSummary, TokenUsage, Usage};

use super::member::{Detail, Member};

/// Tasks of one tree that are looked at.
pub(crate) const TASKS_MAX: usize = 100_000;

/// One task and everything it dispatched.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Family {
    /// The top first, and every task behind the one that dispatched it.
    members: Vec<Member>,
    index: HashMap<TaskId, usize>,
    left_out: usize,
}

/// What tasks took together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) tasks: usize,
    pub(crate) usage: Usage,
    /// Absent when the price of a model is not known.
    pub(crate) cost: Option<Cost>,
}

impl Family {
    /// Which tasks to ask the journal for.
    pub(crate) fn query(root: &TaskId) -> TaskQuery {
        let limit = NonZeroUsize::MIN.saturating_add(TASKS_MAX);
        TaskQuery { which: TaskSelector::Tree(root.clone()), limit }
    }

    /// `top` and everything below it, of the tasks of its tree as a journal lists them: the newest
    /// first. `None` when it is not among them.
    pub(crate) fn new(top: &TaskId, tree: Vec<TaskSummary>) -> Option<Self> {
        let mut family =
            Self { members: Vec::new(), index: HashMap::with_capacity(tree.len()), left_out: 0 };
        for summary in tree.into_iter().rev() {
            if summary.task_id == *top {
                family.add(summary, None, None);
            } else if let Some(parent) = family.parent(summary.parent.as_ref()) {
                family.add(summary, Some(parent), None);
            }
        }
        (!family.members.is_empty()).then_some(family)
    }

    /// The top first, and every task behind the one that dispatched it.
    pub(crate) fn members(&self) -> &[Member] {
        &self.members
    }

    /// The task at the top.
    pub(crate) fn top(&self) -> &Member {
        &self.members[0]
    }

    /// Tasks there was no room for.
    pub(crate) fn left_out(&self) -> usize {
        self.left_out
    }

    /// Keeps what the events of one of its tasks told.
    pub(crate) fn learn(&mut self, member: usize, detail: Detail) {
        self.members[member].detail = Some(detail);
    }

    /// Adds what happened next. Says to which task, if it is one of these and did not know.
    pub(crate) fn apply(&mut self, event: &Event) -> Option<usize> {
        if let Some(&member) = self.index.get(&event.task_id) {
            return self.members[member].apply(event).then_some(member);
        }
        let EventBody::TaskCreated(created) = &event.body else { return None };
        let parent = self.parent(created.parent.as_ref())?;
        let summary = TaskSummary::created(event.task_id.clone(), created, event.at);
        self.add(summary, Some(parent), Some(Detail::created(created)))
    }

    /// What each task took, with everything below it.
    pub(crate) fn sums(&self, prices: &PriceTable) -> Vec<Sum> {
        let own = |member: &Member| Sum::of(&member.summary, prices);
        let mut sums: Vec<Sum> = self.members.iter().map(own).collect();
        for (index, member) in self.members.iter().enumerate().rev() {
            if let Some(parent) = member.parent {
                sums[parent] = sums[parent].and(sums[index]);
            }
        }
        sums
    }

    fn parent(&self, parent: Option<&TaskId>) -> Option<usize> {
        self.index.get(parent?).copied()
    }

    fn add(
        &mut self,
        summary: TaskSummary,
        parent: Option<usize>,
        detail: Option<Detail>,
    ) -> Option<usize> {
        if self.members.len() >= TASKS_MAX {
            self.left_out += 1;
            return None;
        }
        let new = self.members.len();
        self.index.insert(summary.task_id.clone(), new);
        let depth = parent.map_or(0, |parent| self.members[parent].depth + 1);
        if let Some(parent) = parent {
            self.members[parent].children.push(new);
        }
        self.members.push(Member { summary, parent, depth, children: Vec::new(), detail });
        Some(new)
    }
}

impl Sum {
    /// What one task took itself.
    pub(crate) fn of(task: &TaskSummary, prices: &PriceTable) -> Self {
        let cost = antiphon_runtime::cost(&task.spent, prices).ok();
        Self { tasks: 1, usage: task.usage(), cost }
    }

    /// Of no task.
    pub(crate) fn nothing() -> Self {
        Self { tasks: 0, usage: Usage::default(), cost: Some(Cost::default()) }
    }

    /// Both together.
    pub(crate) fn and(self, other: Self) -> Self {
        let mut usage = self.usage;
        usage += other.usage;
        let cost = self.cost.zip(other.cost).map(|(one, other)| one + other);
        Self { tasks: self.tasks + other.tasks, usage, cost }
    }

    /// Tokens, read and written.
    pub(crate) fn tokens(&self) -> u32 {
        TokenUsage::from(self.usage).total_tokens
    }
}
