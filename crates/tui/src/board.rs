//! Everything at work in the project, as a tree beneath the prompt. What needs a person is first.

use std::collections::HashSet;
use std::num::NonZeroUsize;

use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_core::{Event, EventBody, TaskId, TaskStatus, TaskSummary};
use antiphon_project::error::ProjectError;
use antiphon_runtime::Orchestrator;
use antiphon_view::display::escaped;
use antiphon_view::text::{columns, elapsed, fit, one_line};
use antiphon_view::{DisplayStatus, TaskTree, TreeTask};
use chrono::{DateTime, Utc};
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span};

/// Trees that are followed. More are counted.
const TREES_MAX: usize = 64;

/// Tasks that are read at the start.
const LISTED: NonZeroUsize = NonZeroUsize::new(1000).unwrap();

/// The trees of tasks that have not ended.
#[derive(Default)]
pub(crate) struct Board {
    trees: Vec<TaskTree>,
}

/// A task on the board.
struct Row<'a> {
    task: &'a TreeTask,
    status: DisplayStatus,
}

impl Board {
    /// Reads the tasks that have not ended.
    pub(crate) async fn read(&mut self, reader: &Orchestrator) -> Result<(), ProjectError> {
        self.trees.clear();
        let query = TaskQuery { which: TaskSelector::Unfinished, limit: LISTED };
        let mut roots = HashSet::new();
        for task in reader.tasks(query).await? {
            if self.trees.len() < TREES_MAX && roots.insert(task.root.clone()) {
                let all = reader.tasks(TaskTree::query(&task.root)).await?;
                self.trees.extend(TaskTree::new(&task.root, all));
            }
        }
        self.trees.retain(|tree| !has_ended(tree));
        Ok(())
    }

    /// Applies an event of the journal.
    pub(crate) fn apply(&mut self, event: &Event) {
        if let EventBody::TaskCreated(created) = &event.body
            && created.parent.is_none()
            && self.trees.len() < TREES_MAX
        {
            let summary = TaskSummary::created(event.task_id.clone(), created, event.at);
            self.trees.extend(TaskTree::new(&event.task_id, vec![summary]));
            return;
        }
        let changed = self.trees.iter_mut().position(|tree| tree.apply(event).is_some());
        if let Some(index) = changed
            && has_ended(&self.trees[index])
        {
            self.trees.remove(index);
        }
    }

    /// Name and id of each task that has not ended, what needs a person first.
    pub(crate) fn tasks(&self) -> Vec<(TaskId, String)> {
        let rows = self.rows(None);
        let name = |row: &Row<'_>| {
            let task = &row.task.summary;
            let title = one_line(&task.title);
            format!(
                "{} {} {} {title}",
                row.status.sign(),
                escaped(&task.agent),
                task.task_id.short()
            )
        };
        rows.iter().map(|row| (row.task.summary.task_id.clone(), name(row))).collect()
    }

    /// The tasks in the order of their lines.
    pub(crate) fn shown_tasks(&self, own: Option<&TaskId>) -> Vec<TaskId> {
        self.rows(own).iter().map(|row| row.task.summary.task_id.clone()).collect()
    }

    /// The lines, at most `rows_max`, around the selected task. The task at the top of `own` is shown elsewhere.
    pub(crate) fn lines(
        &self,
        own: Option<&TaskId>,
        selected: Option<&TaskId>,
        (width, rows_max): (usize, usize),
        now: DateTime<Utc>,
    ) -> Vec<Line<'static>> {
        let rows = self.rows(own);
        if rows.is_empty() || rows_max == 0 {
            return Vec::new();
        }
        let shown = if rows.len() > rows_max { rows_max - 1 } else { rows.len() };
        let is_selected = |row: &Row<'_>| Some(&row.task.summary.task_id) == selected;
        let at = rows.iter().position(is_selected).unwrap_or(0);
        let first = (at + 1).saturating_sub(shown.max(1));
        let mut lines: Vec<Line<'static>> = rows
            .iter()
            .skip(first)
            .take(shown)
            .map(|row| {
                let line = line(row, width, now);
                if is_selected(row) {
                    line.patch_style(Style::new().add_modifier(Modifier::REVERSED))
                } else {
                    line
                }
            })
            .collect();
        if shown < rows.len() {
            let more = format!("  … {} of {} (/tasks, ↓)", shown, rows.len());
            lines.push(Line::styled(more, Style::new().add_modifier(Modifier::DIM)));
        }
        lines
    }

    fn rows(&self, own: Option<&TaskId>) -> Vec<Row<'_>> {
        let mut trees: Vec<Vec<Row<'_>>> =
            self.trees.iter().map(|tree| rows_of(tree, own)).collect();
        let needs_person = |row: &Row<'_>| row.status == DisplayStatus::NeedsApproval;
        trees.sort_by_key(|rows| !rows.iter().any(needs_person));
        trees.into_iter().flatten().collect()
    }
}

/// The tasks of a tree that have not ended, each behind the one that dispatched it.
fn rows_of<'a>(tree: &'a TaskTree, own: Option<&TaskId>) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    let mut open = vec![0];
    while let Some(index) = open.pop() {
        let task = &tree.tasks()[index];
        open.extend(task.children.iter().rev());
        let is_shown = !task.summary.status.is_terminal() && Some(&task.summary.task_id) != own;
        if is_shown {
            rows.push(Row { task, status: DisplayStatus::of(task) });
        }
    }
    rows
}

fn has_ended(tree: &TaskTree) -> bool {
    tree.tasks().iter().all(|task| task.summary.status.is_terminal())
}

fn line(row: &Row<'_>, width: usize, now: DateTime<Utc>) -> Line<'static> {
    let task = &row.task.summary;
    let color = match row.status {
        DisplayStatus::NeedsApproval | DisplayStatus::Waiting => Color::Yellow,
        DisplayStatus::Failed => Color::Red,
        DisplayStatus::Running | DisplayStatus::Pending => Color::Cyan,
        DisplayStatus::Idle
        | DisplayStatus::Paused
        | DisplayStatus::Completed
        | DisplayStatus::Canceled => Color::DarkGray,
    };
    let time = (now - task.created_at).to_std().unwrap_or_default();
    let before = format!("  {}{} ", "  ".repeat(row.task.depth.min(8)), row.status.sign());
    let name = format!("{} ", escaped(&task.agent));
    let last = row.task.output().map_or_else(|| one_line(&task.title), one_line);
    let rest = match task.status {
        TaskStatus::Running if row.status == DisplayStatus::Running => {
            format!("{} {last}", elapsed(time))
        }
        TaskStatus::Pending
        | TaskStatus::Running
        | TaskStatus::InputRequired
        | TaskStatus::Completed
        | TaskStatus::Failed
        | TaskStatus::Canceled => format!("{} {last}", row.status.word()),
    };
    let used = columns(&before) + columns(&name);
    let rest = fit(&rest, width.saturating_sub(used));
    Line::from(vec![
        Span::styled(before, Style::new().fg(color)),
        Span::styled(name, Style::new().add_modifier(Modifier::BOLD)),
        Span::styled(rest, Style::new().add_modifier(Modifier::DIM)),
    ])
}
