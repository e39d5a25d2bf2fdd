//! A tree of tasks as lines of text: one per task, one below each task that dispatched others with
//! what those took, and a last one with everything.
//!
//! No line is longer than the width it was made for; what does not fit ends in `…`. Of many tasks side
//! by side those that matter most are shown and the others counted.

mod cells;
mod layout;

use antiphon_core::PriceTable;
use chrono::{DateTime, Utc};

use crate::ink::Ink;
use crate::watch::{Family, Member, Sum};
use cells::{Cells, Columns};
use layout::Row;
pub(in crate::commands) use layout::{Fold, State, shown};

/// What of a task stands in the last column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum Telling {
    /// What it was asked and what came of it.
    Words,
    /// Its id, and what it was asked.
    Ids,
}

/// How a tree is drawn.
#[derive(Clone, Copy)]
pub(in crate::commands) struct Drawing<'a> {
    pub(in crate::commands) prices: &'a PriceTable,
    pub(in crate::commands) now: DateTime<Utc>,
    pub(in crate::commands) width: usize,
    pub(in crate::commands) fold: Fold,
    pub(in crate::commands) telling: Telling,
    /// Colors, where they are wanted.
    pub(in crate::commands) ink: Option<Ink>,
}

impl Drawing<'_> {
    /// The lines.
    pub(in crate::commands) fn lines(self, family: &Family) -> Vec<String> {
        let sums = family.sums(self.prices);
        let rows = layout::rows(family, self.fold);
        let cells: Vec<Cells> = rows.iter().map(|row| self.cells(family, &sums, row)).collect();
        let columns = Columns::of(&cells, self.width);
        let mut lines: Vec<String> =
            cells.iter().map(|cells| cells.line(&columns, self.ink)).collect();
        lines.push(cells::cut(&self.total(family, sums[0]), self.width));
        if family.left_out() > 0 {
            lines.push(format!("{} more tasks are not shown", family.left_out()));
        }
        lines
    }

    fn cells(self, family: &Family, sums: &[Sum], row: &Row) -> Cells {
        match row {
            Row::Task { member, branch } => {
                let task = &family.members()[*member];
                let own = Sum::of(&task.summary, self.prices);
                Cells {
                    name: format!("{branch}{}", cells::agent(task)),
                    state: Some(State::of(task)),
                    time: cells::time(&task.summary, self.now),
                    tokens: own.tokens().to_string(),
                    cost: cells::cost(own),
                    words: self.words(task),
                }
            }
            Row::Below { member, branch } => {
                let children = &family.members()[*member].children;
                let below = children.iter().map(|child| sums[*child]);
                let below = below.reduce(Sum::and).unwrap_or_else(Sum::nothing);
                Cells {
                    name: format!("{branch}Σ {} below", below.tasks),
                    tokens: below.tokens().to_string(),
                    cost: cells::cost(below),
                    ..Cells::default()
                }
            }
            Row::More { branch, counts } => {
                Cells { name: format!("{branch}… {counts}"), ..Cells::default() }
            }
        }
    }

    fn words(self, task: &Member) -> (String, String) {
        let title = cells::one_line(&task.summary.title);
        match self.telling {
            Telling::Words => (title, task.output().map(cells::one_line).unwrap_or_default()),
            Telling::Ids => (task.summary.task_id.to_string(), title),
        }
    }

    /// `4 tasks (2 completed, 1 failed, 1 running) · 10324 tokens · $0.0933 · 80 s`.
    fn total(self, family: &Family, sum: Sum) -> String {
        let tasks = crate::terminal::count(sum.tasks as u64, "task");
        let counts = layout::counts(family.members().iter());
        let time = cells::time(&family.top().summary, self.now);
        let cost = sum.cost.map_or("cost unknown".to_owned(), |cost| cost.to_string());
        format!("{tasks} ({counts}) · {} tokens · {cost} · {time}", sum.tokens())
    }
}

#[cfg(test)]
mod tests;
