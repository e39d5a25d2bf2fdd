//! Everything at work in the project, as a tree beneath the prompt. What needs a person is first.

use std::collections::{HashSet, VecDeque};
use std::num::NonZeroUsize;

use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_core::{Event, EventBody, TaskId, TaskStatus, TaskSummary};
use antiphon_project::error::ProjectError;
use antiphon_runtime::Orchestrator;
use antiphon_view::display::escaped;
use antiphon_view::text::{columns, count, elapsed, fit, one_line};
use antiphon_view::{DisplayStatus, TaskTree, TreeTask};
use chrono::{DateTime, Utc};
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span};

/// Trees that are followed. More are counted, and take the place of those that end.
const TREES_MAX: usize = 64;

/// Tasks that have not ended and are read at the start.
const LISTED: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();

/// The trees of tasks that have not ended.
#[derive(Default)]
pub(crate) struct Board {
    trees: Vec<TaskTree>,
    /// Roots of trees that are not followed, in the order in which they take a free place.
    others: VecDeque<TaskId>,
    /// Tasks of trees that are not followed, and that ask a person. Most `TREES_MAX`: of more, the first are followed.
    asking: Vec<TaskId>,
}

/// A task on the board.
struct Row<'a> {
    task: &'a TreeTask,
    status: DisplayStatus,
}

impl Board {
    /// Reads the tasks that have not ended: trees that need a person first, then the newest.
    pub(crate) async fn read(&mut self, reader: &Orchestrator) -> Result<(), ProjectError> {
        *self = Self::default();
        let query = TaskQuery { which: TaskSelector::Unfinished, limit: LISTED };
        let mut tasks = reader.tasks(query).await?;
        tasks.sort_by_key(|task| task.status != TaskStatus::InputRequired);
        let mut known = HashSet::new();
        let roots = tasks.into_iter().map(|task| task.root);
        self.others = roots.filter(|root| known.insert(root.clone())).collect();
        self.fill(reader).await
    }

    /// Applies an event of the journal.
    pub(crate) fn apply(&mut self, event: &Event) {
        if let EventBody::TaskCreated(created) = &event.body
            && created.parent.is_none()
        {
            let is_known = self.trees.iter().any(|tree| root_of(tree) == &event.task_id);
            let is_known = is_known || self.others.contains(&event.task_id);
            if is_known {
                // It was read at the start.
            } else if self.trees.len() >= TREES_MAX {
                self.others.push_back(event.task_id.clone());
            } else {
                let summary = TaskSummary::created(event.task_id.clone(), created, event.at);
                self.trees.extend(TaskTree::new(&event.task_id, vec![summary]));
            }
            return;
        }
        let changed = self.trees.iter_mut().position(|tree| tree.apply(event).is_some());
        match changed {
            Some(index) if has_ended(&self.trees[index]) => drop(self.trees.remove(index)),
            Some(_) => {}
            None if self.others.is_empty() => {}
            None if event.body.ends_task() => self.others.retain(|root| *root != event.task_id),
            None => self.remember_question(event),
        }
    }

    fn remember_question(&mut self, event: &Event) {
        if matches!(event.body, EventBody::ApprovalRequested(_)) && self.asking.len() < TREES_MAX {
            self.asking.push(event.task_id.clone());
        }
    }

    /// Whether a tree that is not followed yet can be.
    pub(crate) fn wants_more(&self) -> bool {
        let has_place = self.trees.len() < TREES_MAX && !self.others.is_empty();
        has_place || !self.asking.is_empty()
    }

    /// Follows trees that were only counted: those that need a person in place of others, then as many as there is room
    /// for.
    pub(crate) async fn fill(&mut self, reader: &Orchestrator) -> Result<(), ProjectError> {
        for task_id in std::mem::take(&mut self.asking) {
            let root = reader.created(&task_id).await?.root.unwrap_or(task_id);
            if self.others.contains(&root) {
                let tasks = reader.tasks(TaskTree::query(&root)).await?;
                self.make_room();
                self.follow(&root, tasks);
            }
        }
        while self.trees.len() < TREES_MAX
            && let Some(root) = self.others.front().cloned()
        {
            let tasks = reader.tasks(TaskTree::query(&root)).await?;
            self.follow(&root, tasks);
        }
        Ok(())
    }

    /// A tree that needs no person gives its place to one that does.
    fn make_room(&mut self) {
        let needs_no_person = |tree: &TaskTree| !rows_of(tree, None).iter().any(needs_person);
        if self.trees.len() >= TREES_MAX
            && let Some(index) = self.trees.iter().rposition(needs_no_person)
        {
            let tree = self.trees.remove(index);
            self.others.push_front(root_of(&tree).clone());
        }
    }

    fn follow(&mut self, root: &TaskId, tasks: Vec<TaskSummary>) {
        self.others.retain(|other| other != root);
        let tree = TaskTree::new(root, tasks).filter(|tree| !has_ended(tree));
        self.trees.extend(tree);
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

    /// Whether a task has not ended.
    pub(crate) fn is_open(&self, task_id: &TaskId) -> bool {
        let mut tasks = self.trees.iter().flat_map(TaskTree::tasks).map(|task| &task.summary);
        tasks.any(|task| task.task_id == *task_id && !task.status.is_terminal())
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
        let has_more = rows.len() > rows_max || !self.others.is_empty();
        let shown = if has_more { rows.len().min(rows_max - 1) } else { rows.len() };
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
        if has_more {
            let others = match self.others.len() as u64 {
                0 => String::new(),
                number => format!(", and {}", count(number, "more tree")),
            };
            let more = format!("  … {shown} of {}{others} (/tasks, ↓)", rows.len());
            lines.push(Line::styled(fit(&more, width), Style::new().add_modifier(Modifier::DIM)));
        }
        lines
    }

    fn rows(&self, own: Option<&TaskId>) -> Vec<Row<'_>> {
        let mut trees: Vec<Vec<Row<'_>>> =
            self.trees.iter().map(|tree| rows_of(tree, own)).collect();
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

fn needs_person(row: &Row<'_>) -> bool {
    row.status == DisplayStatus::NeedsApproval
}

fn root_of(tree: &TaskTree) -> &TaskId {
    &tree.top().summary.task_id
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

#[cfg(test)]
mod tests;
