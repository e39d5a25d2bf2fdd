//! A tree of tasks as lines of text: one per task, one below each task that dispatched others with
//! the totals of those, and a last one with the totals of the tree.
//!
//! No line is longer than the given width; text that does not fit ends in `…`. Of many siblings those
//! that need attention are shown and the others counted.

mod cells;
mod layout;

use antiphon_core::PriceTable;
use chrono::{DateTime, Utc};

use super::{TaskTree, TreeTask, TreeTotals};
use crate::colors::Colors;
use crate::display::escaped;
use crate::text;
use cells::{Cells, Columns};
use layout::Row;
pub use layout::{Collapse, DisplayStatus, shown_tasks};

/// What the last column of a task's line contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastColumn {
    /// The title of the task and its last line of output.
    Output,
    /// The id of the task and its title.
    Id,
}

/// How a tree is drawn.
#[derive(Debug, Clone, Copy)]
pub struct TreeDrawing<'a> {
    /// Prices of models, for the column of costs.
    pub prices: &'a PriceTable,
    /// The end of the time of a task that has not ended.
    pub now: DateTime<Utc>,
    /// Characters of a line at most.
    pub width: usize,
    /// Which siblings are counted instead of shown.
    pub collapse: Collapse,
    /// What the last column contains.
    pub last_column: LastColumn,
    /// Whether lines are colored.
    pub colors: Colors,
}

impl TreeDrawing<'_> {
    /// The lines, without line breaks.
    pub fn lines(self, tree: &TaskTree) -> Vec<String> {
        let totals = tree.totals(self.prices);
        let rows = layout::rows(tree, self.collapse);
        let cells: Vec<Cells> = rows.iter().map(|row| self.cells(tree, &totals, row)).collect();
        let columns = Columns::of(&cells, self.width);
        let mut lines: Vec<String> =
            cells.iter().map(|cells| cells.line(&columns, self.colors)).collect();
        lines.push(text::fit(&self.total_line(tree, totals[0]), self.width));
        if tree.left_out() > 0 {
            lines.push(format!("{} more tasks are not shown", tree.left_out()));
        }
        lines
    }

    fn cells(self, tree: &TaskTree, totals: &[TreeTotals], row: &Row) -> Cells {
        match row {
            Row::Task { index, branch } => {
                let task = &tree.tasks()[*index];
                let own = TreeTotals::of(&task.summary, self.prices);
                Cells {
                    name: format!("{branch}{}", cells::agent(task)),
                    status: Some(DisplayStatus::of(task)),
                    time: cells::time(&task.summary, self.now),
                    tokens: own.tokens().to_string(),
                    cost: cells::cost(own),
                    last: self.last_cell(task),
                }
            }
            Row::Totals { index, branch } => {
                let children = &tree.tasks()[*index].children;
                let below = children.iter().map(|child| totals[*child]);
                let below = below.reduce(TreeTotals::and).unwrap_or_else(TreeTotals::zero);
                Cells {
                    name: format!("{branch}Σ {} below", below.tasks),
                    tokens: below.tokens().to_string(),
                    cost: cells::cost(below),
                    ..Cells::default()
                }
            }
            Row::Collapsed { branch, counts } => {
                Cells { name: format!("{branch}… {counts}"), ..Cells::default() }
            }
        }
    }

    fn last_cell(self, task: &TreeTask) -> (String, String) {
        let title = text::one_line(&task.summary.title);
        match self.last_column {
            LastColumn::Output => (title, task.output().map(text::one_line).unwrap_or_default()),
            LastColumn::Id => (escaped(task.summary.task_id.short()).into_owned(), title),
        }
    }

    /// `4 tasks (2 completed, 1 failed, 1 running) · 10324 tokens · $0.0933 · 80 s`.
    fn total_line(self, tree: &TaskTree, totals: TreeTotals) -> String {
        let tasks = text::count(totals.tasks as u64, "task");
        let counts = layout::counts(tree.tasks().iter());
        let time = cells::time(&tree.top().summary, self.now);
        let cost = totals.cost.map_or("cost unknown".to_owned(), |cost| cost.to_string());
        format!("{tasks} ({counts}) · {} tokens · {cost} · {time}", totals.tokens())
    }
}

/// One task on one line: `researcher (0199…) ✓ completed 12 s 1204 tokens $0.0123 12 places found`.
pub fn change_line(task: &TreeTask, prices: &PriceTable) -> String {
    let summary = &task.summary;
    let (status, own) = (DisplayStatus::of(task), TreeTotals::of(summary, prices));
    let cost = own.cost.map_or(String::new(), |cost| format!(" {cost}"));
    let time = summary.ended_at.map(|end| (end - summary.created_at).to_std().unwrap_or_default());
    let time = time.map_or(String::new(), |time| format!(" {}", text::elapsed(time)));
    let output =
        task.output().map_or(String::new(), |output| format!(" {}", text::one_line(output)));
    format!(
        "{} ({}) {} {}{time} {} tokens{cost}{output}",
        escaped(&summary.agent),
        summary.task_id,
        status.sign(),
        status.word(),
        own.tokens(),
    )
}

#[cfg(test)]
mod tests;
