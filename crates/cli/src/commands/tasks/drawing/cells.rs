//! The cells of a line, and the widths they get. What does not fit ends in `…`.

use antiphon_core::{TaskSummary, visible};
use chrono::{DateTime, Utc};

use super::layout::State;
use crate::ink::Ink;
use crate::screen::elapsed;
use crate::watch::{Member, Sum};

/// The least width that the words of a task are shown in.
const WORDS_WIDTH_MIN: usize = 8;

/// In less than this there is no room for both what was asked and what came of it.
const BOTH_WIDTH_MIN: usize = 24;

/// Between two cells.
const GAP: usize = 2;

/// Between what was asked and what came of it.
const BAR: &str = " │ ";

/// One line, cell by cell.
#[derive(Debug, Clone, Default)]
pub(super) struct Cells {
    pub(super) name: String,
    pub(super) state: Option<State>,
    pub(super) time: String,
    pub(super) tokens: String,
    pub(super) cost: String,
    /// What was asked, and what came of it.
    pub(super) words: (String, String),
}

/// How wide each cell is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Columns {
    name: usize,
    state: usize,
    time: usize,
    tokens: usize,
    cost: usize,
    /// Nothing is shown in less than [`WORDS_WIDTH_MIN`].
    words: usize,
    all: usize,
}

impl Columns {
    pub(super) fn of(lines: &[Cells], width: usize) -> Self {
        let widest = |cell: fn(&Cells) -> usize| lines.iter().map(cell).max().unwrap_or_default();
        let state = widest(|cells| cells.state.map_or(0, |state| 2 + state.word().len()));
        let time = widest(|cells| chars(&cells.time));
        let tokens = widest(|cells| chars(&cells.tokens));
        let cost = widest(|cells| chars(&cells.cost));
        let numbers = state + time + tokens + cost + 4 * GAP;
        // Lines that only count may run on to the right.
        let name = widest(|cells| if cells.tokens.is_empty() { 0 } else { chars(&cells.name) });
        let most = width.saturating_sub(numbers).max(width / 3).max(1);
        let name = name.min(most).min((width * 2 / 5).max(16));
        let words = width.saturating_sub(name + numbers + GAP);
        Self { name, state, time, tokens, cost, words, all: width }
    }
}

impl Cells {
    /// The line, in color where that is wanted.
    pub(super) fn line(&self, columns: &Columns, ink: Option<Ink>) -> String {
        if self.tokens.is_empty() {
            return faint(ink, &cut(&self.name, columns.all));
        }
        let state = self.state.map_or(String::new(), |s| format!("{} {}", s.sign(), s.word()));
        let right = format!(
            "  {:>time$}  {:>tokens$}  {:>cost$}",
            self.time,
            self.tokens,
            self.cost,
            time = columns.time,
            tokens = columns.tokens,
            cost = columns.cost,
        );
        let name = format!("{:width$}", cut(&self.name, columns.name), width = columns.name);
        let state = format!("{state:width$}", width = columns.state);
        let plain = format!("{name}  {state}{right}");
        if chars(&plain) > columns.all {
            return cut(&plain, columns.all);
        }
        let Some(kind) = self.state else { return faint(ink, plain.trim_end()) };
        let (title, output) = self.fitting_words(columns.words);
        let words = match (title.is_empty(), output.is_empty()) {
            (true, true) => String::new(),
            (false, true) => format!("  {title}"),
            (true, false) => format!("  {}", faint(ink, &output)),
            (false, false) => format!("  {title}{}", faint(ink, &format!("{BAR}{output}"))),
        };
        format!("{name}  {}{right}{words}", painted(ink, kind, &state)).trim_end().to_owned()
    }

    fn fitting_words(&self, width: usize) -> (String, String) {
        let (title, output) = &self.words;
        if width < WORDS_WIDTH_MIN {
            return (String::new(), String::new());
        }
        if title.is_empty() || output.is_empty() {
            return (cut(title, width), cut(output, width));
        }
        if width < BOTH_WIDTH_MIN {
            return (String::new(), cut(output, width));
        }
        let width = width.saturating_sub(chars(BAR));
        // Two fifths for what was asked, or all that the other leaves.
        let for_title = (width * 2 / 5).max(width.saturating_sub(chars(output)));
        let title = cut(title, for_title);
        let output = cut(output, width - chars(&title));
        (title, output)
    }
}

/// Who works on a task: `writer`, `planner → writer`, `writer @sandbox`.
pub(super) fn agent(task: &Member) -> String {
    let agent = one_line(&task.summary.agent);
    let Some(detail) = &task.detail else { return agent };
    let before = match detail.handovers.as_slice() {
        [] => String::new(),
        [one] => format!("{} → ", one_line(one)),
        [.., last] => format!("… → {} → ", one_line(last)),
    };
    let runner =
        detail.runner.as_ref().map_or(String::new(), |kind| format!(" @{}", one_line(kind)));
    format!("{before}{agent}{runner}")
}

/// For how long a task has been there, or was.
pub(super) fn time(task: &TaskSummary, now: DateTime<Utc>) -> String {
    let until = task.ended_at.unwrap_or(now);
    elapsed((until - task.created_at).to_std().unwrap_or_default())
}

/// What tasks cost, as far as that is known.
pub(super) fn cost(sum: Sum) -> String {
    sum.cost.map_or("?".to_owned(), |cost| cost.to_string())
}

/// Text on one line, without what cannot be seen.
pub(super) fn one_line(text: &str) -> String {
    visible(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// At most so many characters.
pub(super) fn cut(text: &str, width: usize) -> String {
    if chars(text) <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    if width == 0 { kept } else { kept + "…" }
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

fn painted(ink: Option<Ink>, state: State, text: &str) -> String {
    let Some(ink) = ink else { return text.to_owned() };
    match state {
        State::Completed => ink.green(text),
        State::Failed => ink.red(text),
        State::Pending | State::Canceled | State::Idle => ink.dim(text),
        State::Asks | State::Waits | State::Running | State::Paused => text.to_owned(),
    }
}

fn faint(ink: Option<Ink>, text: &str) -> String {
    ink.map_or_else(|| text.to_owned(), |ink| ink.dim(text))
}
