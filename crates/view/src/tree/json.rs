//! A tree of tasks as JSON.

use antiphon_core::{Cost, PriceTable, TaskSummary, Usage};
use serde::Serialize;

use super::{TaskTree, TreeTask, TreeTotals};

/// Levels of nested JSON; deeper tasks are counted. JSON parsers have a limit, usually above this one.
const LEVELS_MAX: usize = 50;

/// One task as JSON.
#[derive(Debug, Serialize)]
pub struct TaskRow<'a> {
    #[serde(flatten)]
    summary: &'a TaskSummary,
    #[serde(skip_serializing_if = "Option::is_none")]
    runner: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    handovers: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a str>,
    usage: Usage,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<Cost>,
}

impl<'a> TaskRow<'a> {
    /// The row of a task; usage and cost are its own, without its descendants.
    pub fn new(task: &'a TreeTask, prices: &PriceTable) -> Self {
        let own = TreeTotals::of(&task.summary, prices);
        let detail = task.detail.as_ref();
        Self {
            summary: &task.summary,
            runner: detail.and_then(|detail| detail.runner.as_deref()),
            handovers: detail.map_or(&[], |detail| &detail.handovers),
            output: task.output(),
            usage: own.usage,
            cost: own.cost,
        }
    }
}

/// A task as JSON, with its descendants nested in it and their totals.
#[derive(Debug, Serialize)]
pub struct TreeNode<'a> {
    #[serde(flatten)]
    row: TaskRow<'a>,
    tasks_total: usize,
    usage_total: Usage,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_total: Option<Cost>,
    children: Vec<TreeNode<'a>>,
    #[serde(skip_serializing_if = "is_zero")]
    children_left_out: usize,
}

impl<'a> TreeNode<'a> {
    /// The whole tree. Below 50 levels, children are counted and left out.
    pub fn of_tree(tree: &'a TaskTree, prices: &PriceTable) -> Self {
        Self::new(tree, &tree.totals(prices), prices, 0, 0)
    }

    fn new(
        tree: &'a TaskTree,
        totals: &[TreeTotals],
        prices: &PriceTable,
        index: usize,
        level: usize,
    ) -> Self {
        let task = &tree.tasks()[index];
        let (children, left_out) = if level + 1 < LEVELS_MAX {
            let child = |child: &usize| Self::new(tree, totals, prices, *child, level + 1);
            (task.children.iter().map(child).collect(), 0)
        } else {
            (Vec::new(), task.children.len())
        };
        let TreeTotals { tasks, usage, cost } = totals[index];
        Self {
            row: TaskRow::new(task, prices),
            tasks_total: tasks,
            usage_total: usage,
            cost_total: cost,
            children,
            children_left_out: left_out,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}
