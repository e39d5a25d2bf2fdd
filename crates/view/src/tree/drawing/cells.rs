//! The cells of a line and the widths of the columns. Text that does not fit ends in `…`.

use antiphon_core::TaskSummary;
use chrono::{DateTime, Utc};

use super::layout::DisplayStatus;
use crate::colors::Colors;
use crate::display::escaped;
use crate::text::{elapsed, fit};
use crate::tree::{TreeTask, TreeTotals};

/// The last column is left out when it would be narrower.
const LAST_WIDTH_MIN: usize = 8;

/// A last column narrower than this shows its second part alone.
const BOTH_WIDTH_MIN: usize = 24;

/// Spaces between two cells.
const GAP: usize = 2;

/// Between the two parts of the last column.
const BAR: &str = " │ ";

/// One line, cell by cell.
#[derive(Debug, Clone, Default)]
pub(super) struct Cells {
    pub(super) name: String,
    pub(super) status: Option<DisplayStatus>,
    pub(super) time: String,
    pub(super) tokens: String,
    pub(super) cost: String,
    /// The two parts of the last column.
    pub(super) last: (String, String),
}

/// Width of each column, in characters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Columns {
    name: usize,
    status: usize,
    time: usize,
    tokens: usize,
    cost: usize,
    last: usize,
    all: usize,
}

impl Columns {
    pub(super) fn of(lines: &[Cells], width: usize) -> Self {
        let widest = |cell: fn(&Cells) -> usize| lines.iter().map(cell).max().unwrap_or_default();
        let status = widest(|cells| cells.status.map_or(0, |status| 2 + status.word().len()));
        let time = widest(|cells| chars(&cells.time));
        let tokens = widest(|cells| chars(&cells.tokens));
        let cost = widest(|cells| chars(&cells.cost));
        let numbers = status + time + tokens + cost + 4 * GAP;
        // A line that only counts collapsed tasks may use the whole width.
        let name = widest(|cells| if cells.tokens.is_empty() { 0 } else { chars(&cells.name) });
        let most = width.saturating_sub(numbers).max(width / 3).max(1);
        let name = name.min(most).min((width * 2 / 5).max(16));
        let last = width.saturating_sub(name + numbers + GAP);
        Self { name, status, time, tokens, cost, last, all: width }
    }
}

impl Cells {
    pub(super) fn line(&self, columns: &Columns, colors: Colors) -> String {
        if self.tokens.is_empty() {
            return colors.dim(&fit(&self.name, columns.all));
        }
        let status = self.status.map_or(String::new(), |s| format!("{} {}", s.sign(), s.word()));
        let right = format!(
            "  {:>time$}  {:>tokens$}  {:>cost$}",
            self.time,
            self.tokens,
            self.cost,
            time = columns.time,
            tokens = columns.tokens,
            cost = columns.cost,
        );
        let name = format!("{:width$}", fit(&self.name, columns.name), width = columns.name);
        let padded = format!("{status:width$}", width = columns.status);
        let plain = format!("{name}  {padded}{right}");
        if chars(&plain) > columns.all {
            return fit(&plain, columns.all);
        }
        let Some(status) = self.status else { return colors.dim(plain.trim_end()) };
        let (first, second) = self.fitting_last(columns.last);
        let last = match (first.is_empty(), second.is_empty()) {
            (true, true) => String::new(),
            (false, true) => format!("  {first}"),
            (true, false) => format!("  {}", colors.dim(&second)),
            (false, false) => format!("  {first}{}", colors.dim(&format!("{BAR}{second}"))),
        };
        format!("{name}  {}{right}{last}", painted(colors, status, &padded)).trim_end().to_owned()
    }

    fn fitting_last(&self, width: usize) -> (String, String) {
        let (first, second) = &self.last;
        if width < LAST_WIDTH_MIN {
            return (String::new(), String::new());
        }
        if first.is_empty() || second.is_empty() {
            return (fit(first, width), fit(second, width));
        }
        if width < BOTH_WIDTH_MIN {
            return (String::new(), fit(second, width));
        }
        let width = width.saturating_sub(chars(BAR));
        // Two fifths for the first part, or all that the second part leaves.
        let for_first = (width * 2 / 5).max(width.saturating_sub(chars(second)));
        let first = fit(first, for_first);
        let second = fit(second, width - chars(&first));
        (first, second)
    }
}

/// The agent of a task: `writer`, `planner → writer`, `writer @sandbox`, `writer @office` for the peer `office`.
pub(super) fn agent(task: &TreeTask) -> String {
    let agent = escaped(&task.summary.agent);
    let runs_on = &task.summary.runs_on;
    let runner = Some(runs_on.runner.as_str()).filter(|_| !runs_on.is_local());
    let runner = runner.or(task.detail.as_ref().and_then(|detail| detail.runner.as_deref()));
    let place = runs_on.peer.as_deref().or(runner);
    let place = place.map_or(String::new(), |place| format!(" @{}", escaped(place)));
    let handovers = task.detail.as_ref().map_or(&[] as &[_], |detail| &detail.handovers);
    let before = match handovers {
        [] => String::new(),
        [one] => format!("{} → ", escaped(one)),
        [.., last] => format!("… → {} → ", escaped(last)),
    };
    format!("{before}{agent}{place}")
}

/// The time from the creation of a task to its end, or to now.
pub(super) fn time(task: &TaskSummary, now: DateTime<Utc>) -> String {
    let until = task.ended_at.unwrap_or(now);
    elapsed((until - task.created_at).to_std().unwrap_or_default())
}

/// The cost, or `?` when it is unknown.
pub(super) fn cost(totals: TreeTotals) -> String {
    totals.cost.map_or("?".to_owned(), |cost| cost.to_string())
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

fn painted(colors: Colors, status: DisplayStatus, text: &str) -> String {
    match status {
        DisplayStatus::Completed => colors.green(text),
        DisplayStatus::Failed => colors.red(text),
        DisplayStatus::Pending | DisplayStatus::Canceled | DisplayStatus::Idle => colors.dim(text),
        DisplayStatus::NeedsApproval
        | DisplayStatus::Waiting
        | DisplayStatus::Running
        | DisplayStatus::Paused => text.to_owned(),
    }
}
