//! Which tasks of a tree are shown below one another, and which are counted instead.

use antiphon_core::{TaskStatus, WaitingFor};

use crate::tree::{TaskTree, TreeTask};

/// Levels that are shown; deeper tasks are counted.
const LEVELS_MAX: usize = 40;

/// Which siblings are counted instead of shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collapse {
    /// None: all are shown.
    Never,
    /// All beyond this number; those that need attention are shown first.
    Beyond(usize),
}

/// One line of a tree. `branch` is the drawing to its left, `index` that of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Row {
    Task {
        index: usize,
        branch: String,
    },
    /// The totals of all descendants of a task.
    Totals {
        index: usize,
        branch: String,
    },
    /// Tasks that are counted.
    Collapsed {
        branch: String,
        counts: String,
    },
}

/// The status of a task as a person reads it. The ones that need attention come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DisplayStatus {
    /// A tool call waits for an approval.
    NeedsApproval,
    /// It waits for its budget or for the result of a client's tool.
    Waiting,
    /// It ended with an error.
    Failed,
    /// It runs.
    Running,
    /// It is the task of a resident agent that waits for an interaction.
    Idle,
    /// A person paused it.
    Paused,
    /// It has not started.
    Pending,
    /// It ended with a result.
    Completed,
    /// It was canceled.
    Canceled,
}

impl DisplayStatus {
    const ALL: [Self; 9] = [
        Self::Completed,
        Self::Failed,
        Self::Canceled,
        Self::NeedsApproval,
        Self::Waiting,
        Self::Paused,
        Self::Running,
        Self::Idle,
        Self::Pending,
    ];

    /// The status of a task.
    pub fn of(task: &TreeTask) -> Self {
        if task.is_idle() {
            return Self::Idle;
        }
        match (task.summary.status, task.summary.waiting_for) {
            (TaskStatus::Pending, _) => Self::Pending,
            (
                TaskStatus::Running,
                Some(
                    WaitingFor::Approval
                    | WaitingFor::Resume
                    | WaitingFor::ToolResult
                    | WaitingFor::Budget,
                )
                | None,
            ) => Self::Running,
            (TaskStatus::InputRequired, Some(WaitingFor::Approval)) => Self::NeedsApproval,
            (TaskStatus::InputRequired, Some(WaitingFor::Resume)) => Self::Paused,
            (TaskStatus::Running, _)
            | (
                TaskStatus::InputRequired,
                Some(
                    WaitingFor::ToolResult
                    | WaitingFor::Budget
                    | WaitingFor::Model
                    | WaitingFor::Peer
                    | WaitingFor::Storage,
                )
                | None,
            ) => Self::Waiting,
            (TaskStatus::Completed, _) => Self::Completed,
            (TaskStatus::Failed, _) => Self::Failed,
            (TaskStatus::Canceled, _) => Self::Canceled,
        }
    }

    /// The word for it: `running`.
    pub fn word(self) -> &'static str {
        match self {
            Self::NeedsApproval => "asks",
            Self::Waiting => "waits",
            Self::Failed => "failed",
            Self::Running => "running",
            Self::Idle => "idle",
            Self::Paused => "paused",
            Self::Pending => "pending",
            Self::Completed => "completed",
            Self::Canceled => "canceled",
        }
    }

    /// The sign for it: `●`.
    pub fn sign(self) -> char {
        match self {
            Self::NeedsApproval => '?',
            Self::Waiting => '◌',
            Self::Failed => '✗',
            Self::Running => '●',
            Self::Idle => '◦',
            Self::Paused => '‖',
            Self::Pending => '○',
            Self::Completed => '✓',
            Self::Canceled => '–',
        }
    }
}

/// The indexes of the tasks that are shown, from the top down.
pub fn shown_tasks(tree: &TaskTree, collapse: Collapse) -> Vec<usize> {
    let task = |row| match row {
        Row::Task { index, .. } => Some(index),
        Row::Totals { .. } | Row::Collapsed { .. } => None,
    };
    rows(tree, collapse).into_iter().filter_map(task).collect()
}

/// `2 completed, 1 failed`.
pub(super) fn counts<'a>(tasks: impl Iterator<Item = &'a TreeTask>) -> String {
    let mut counts = DisplayStatus::ALL.map(|status| (status, 0_usize));
    for task in tasks {
        let status = DisplayStatus::of(task);
        for (counted, count) in &mut counts {
            *count += usize::from(*counted == status);
        }
    }
    let some = counts.iter().filter(|(_, count)| *count > 0);
    some.map(|(status, count)| format!("{count} {}", status.word())).collect::<Vec<_>>().join(", ")
}

/// The lines of a tree, from the top down.
pub(super) fn rows(tree: &TaskTree, collapse: Collapse) -> Vec<Row> {
    let mut rows = Vec::new();
    // A stack instead of recursion: a tree may be deep. The next entry is the last one.
    let top = Entry { item: Item::Task(0), above: String::new(), position: Position::Top };
    let mut stack = vec![top];
    while let Some(Entry { item, above, position }) = stack.pop() {
        let branch = format!("{above}{}", position.branch());
        let index = match item {
            Item::Task(index) => index,
            Item::Collapsed(counts) => {
                rows.push(Row::Collapsed { branch, counts });
                continue;
            }
        };
        rows.push(Row::Task { index, branch });
        let task = &tree.tasks()[index];
        if task.children.is_empty() {
            continue;
        }
        let above = format!("{above}{}", position.margin());
        rows.push(Row::Totals { index, branch: format!("{above}│ ") });
        stack.extend(children(tree, task, collapse, &above));
    }
    rows
}

/// A line that has not been laid out yet.
struct Entry {
    item: Item,
    /// The vertical lines to its left, which continue below it.
    above: String,
    position: Position,
}

enum Item {
    Task(usize),
    Collapsed(String),
}

/// Where an entry stands among its siblings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    Top,
    Middle,
    Last,
}

impl Position {
    fn branch(self) -> &'static str {
        match self {
            Self::Top => "",
            Self::Middle => "├─ ",
            Self::Last => "└─ ",
        }
    }

    /// The drawing to the left of everything below it.
    fn margin(self) -> &'static str {
        match self {
            Self::Top => "",
            Self::Middle => "│  ",
            Self::Last => "   ",
        }
    }
}

/// The entries below a task, the last one first.
fn children(tree: &TaskTree, task: &TreeTask, collapse: Collapse, above: &str) -> Vec<Entry> {
    let shown_max = match collapse {
        _ if task.depth + 1 >= LEVELS_MAX => 0,
        Collapse::Never => usize::MAX,
        // A line that counts one task is no shorter than the line of that task.
        Collapse::Beyond(most) if task.children.len() == most + 1 => most + 1,
        Collapse::Beyond(most) => most,
    };
    let mut shown = task.children.clone();
    shown.sort_by_key(|child| DisplayStatus::of(&tree.tasks()[*child]));
    let rest = shown.split_off(shown_max.min(shown.len()));
    shown.sort_unstable();
    let mut items: Vec<Item> = shown.into_iter().map(Item::Task).collect();
    if !rest.is_empty() {
        let counts = counts(rest.iter().map(|child| &tree.tasks()[*child]));
        let all = rest.len() == task.children.len();
        items.push(Item::Collapsed(if all { counts } else { counts.replacen(' ', " more ", 1) }));
    }
    let last = items.len() - 1;
    let position = |index| if index == last { Position::Last } else { Position::Middle };
    let entry = |(index, item)| Entry { item, above: above.to_owned(), position: position(index) };
    let mut entries: Vec<Entry> = items.into_iter().enumerate().map(entry).collect();
    entries.reverse();
    entries
}
