//! Which tasks of a tree are shown, below one another, and what is counted instead.

use antiphon_core::{TaskStatus, WaitingFor};

use crate::watch::{Family, Member};

/// Levels that are shown; what is deeper is counted.
const LEVELS_MAX: usize = 40;

/// How many tasks side by side are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fold {
    /// All of them.
    Nothing,
    /// So many.
    Beyond(usize),
}

/// One line of a tree. `branch` is the lines to its left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Row {
    Task {
        member: usize,
        branch: String,
    },
    /// What the tasks below one took.
    Below {
        member: usize,
        branch: String,
    },
    /// Tasks that are counted.
    More {
        branch: String,
        counts: String,
    },
}

/// How far a task got, as a person is told. In the order of how much that matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum State {
    Asks,
    Waits,
    Failed,
    Running,
    Idle,
    Paused,
    Pending,
    Completed,
    Canceled,
}

impl State {
    const ALL: [Self; 9] = [
        Self::Completed,
        Self::Failed,
        Self::Canceled,
        Self::Asks,
        Self::Waits,
        Self::Paused,
        Self::Running,
        Self::Idle,
        Self::Pending,
    ];

    /// Of a task.
    pub(crate) fn of(task: &Member) -> Self {
        if task.is_idle() {
            return Self::Idle;
        }
        match (task.summary.status, task.summary.waiting_for) {
            (TaskStatus::Pending, _) => Self::Pending,
            (TaskStatus::Running, _) => Self::Running,
            (TaskStatus::InputRequired, Some(WaitingFor::Approval)) => Self::Asks,
            (TaskStatus::InputRequired, Some(WaitingFor::Resume)) => Self::Paused,
            (
                TaskStatus::InputRequired,
                Some(WaitingFor::ToolResult | WaitingFor::Budget) | None,
            ) => Self::Waits,
            (TaskStatus::Completed, _) => Self::Completed,
            (TaskStatus::Failed, _) => Self::Failed,
            (TaskStatus::Canceled, _) => Self::Canceled,
        }
    }

    /// Its word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Asks => "asks",
            Self::Waits => "waits",
            Self::Failed => "failed",
            Self::Running => "running",
            Self::Idle => "idle",
            Self::Paused => "paused",
            Self::Pending => "pending",
            Self::Completed => "completed",
            Self::Canceled => "canceled",
        }
    }

    /// Its sign.
    pub(crate) fn sign(self) -> char {
        match self {
            Self::Asks => '?',
            Self::Waits => '◌',
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

/// The tasks that are shown.
pub(crate) fn shown(family: &Family, fold: Fold) -> Vec<usize> {
    let task = |row| match row {
        Row::Task { member, .. } => Some(member),
        Row::Below { .. } | Row::More { .. } => None,
    };
    rows(family, fold).into_iter().filter_map(task).collect()
}

/// `2 completed, 1 failed`.
pub(super) fn counts<'a>(members: impl Iterator<Item = &'a Member>) -> String {
    let mut counts = State::ALL.map(|state| (state, 0_usize));
    for member in members {
        let state = State::of(member);
        for (counted, count) in &mut counts {
            *count += usize::from(*counted == state);
        }
    }
    let some = counts.iter().filter(|(_, count)| *count > 0);
    some.map(|(state, count)| format!("{count} {}", state.word())).collect::<Vec<_>>().join(", ")
}

/// The lines of a tree, from the top down.
pub(super) fn rows(family: &Family, fold: Fold) -> Vec<Row> {
    let mut rows = Vec::new();
    // What is still to be drawn, the next one last: a tree may be deep.
    let mut ahead = vec![Ahead { what: What::Task(0), above: String::new(), place: Place::Top }];
    while let Some(Ahead { what, above, place }) = ahead.pop() {
        let branch = format!("{above}{}", place.branch());
        let member = match what {
            What::Task(member) => member,
            What::More(counts) => {
                rows.push(Row::More { branch, counts });
                continue;
            }
        };
        rows.push(Row::Task { member, branch });
        let task = &family.members()[member];
        if task.children.is_empty() {
            continue;
        }
        let above = format!("{above}{}", place.beside());
        rows.push(Row::Below { member, branch: format!("{above}│ ") });
        ahead.extend(below(family, task, fold, &above));
    }
    rows
}

struct Ahead {
    what: What,
    /// The lines to its left that go on below it.
    above: String,
    place: Place,
}

enum What {
    Task(usize),
    More(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Top,
    Between,
    Last,
}

impl Place {
    fn branch(self) -> &'static str {
        match self {
            Self::Top => "",
            Self::Between => "├─ ",
            Self::Last => "└─ ",
        }
    }

    /// What stands left of everything below it.
    fn beside(self) -> &'static str {
        match self {
            Self::Top => "",
            Self::Between => "│  ",
            Self::Last => "   ",
        }
    }
}

/// The children of a task, the last one first.
fn below(family: &Family, task: &Member, fold: Fold, above: &str) -> Vec<Ahead> {
    let most = match fold {
        _ if task.depth + 1 >= LEVELS_MAX => 0,
        Fold::Nothing => usize::MAX,
        // A line that says how many more there are is no shorter than the one it stands for.
        Fold::Beyond(most) if task.children.len() == most + 1 => most + 1,
        Fold::Beyond(most) => most,
    };
    let mut shown = task.children.clone();
    shown.sort_by_key(|child| State::of(&family.members()[*child]));
    let rest = shown.split_off(most.min(shown.len()));
    shown.sort_unstable();
    let mut whats: Vec<What> = shown.into_iter().map(What::Task).collect();
    if !rest.is_empty() {
        let counts = counts(rest.iter().map(|child| &family.members()[*child]));
        let all = rest.len() == task.children.len();
        whats.push(What::More(if all { counts } else { counts.replacen(' ', " more ", 1) }));
    }
    let last = whats.len() - 1;
    let place = |index| if index == last { Place::Last } else { Place::Between };
    let ahead = |(index, what)| Ahead { what, above: above.to_owned(), place: place(index) };
    let mut all: Vec<Ahead> = whats.into_iter().enumerate().map(ahead).collect();
    all.reverse();
    all
}
