//! A list beneath the prompt to choose from: completions of what is typed, sessions, tasks, agents.

use antiphon_view::text::fit;
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span};

/// Entries that are shown at a time.
const SHOWN: usize = 8;

/// An entry of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice<V> {
    pub(crate) label: String,
    /// What is shown behind the label.
    pub(crate) detail: String,
    pub(crate) value: V,
}

/// Entries, one of which is selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChoiceList<V> {
    pub(crate) title: String,
    entries: Vec<Choice<V>>,
    selected: usize,
}

impl<V: Clone> ChoiceList<V> {
    /// A list; `None` without entries.
    pub(crate) fn new(title: &str, entries: Vec<Choice<V>>) -> Option<Self> {
        (!entries.is_empty()).then(|| Self { title: title.to_owned(), entries, selected: 0 })
    }

    pub(crate) fn up(&mut self) {
        self.selected = self.selected.checked_sub(1).unwrap_or(self.entries.len() - 1);
    }

    pub(crate) fn down(&mut self) {
        self.selected = (self.selected + 1) % self.entries.len();
    }

    pub(crate) fn selected(&self) -> &Choice<V> {
        &self.entries[self.selected]
    }

    /// The entries around the selected one.
    pub(crate) fn lines(&self, width: usize, rows_max: usize) -> Vec<Line<'static>> {
        let dim = Style::new().add_modifier(Modifier::DIM);
        let mut lines = Vec::new();
        if !self.title.is_empty() {
            lines.push(Line::styled(fit(&self.title, width), dim));
        }
        let shown = SHOWN.min(rows_max.saturating_sub(lines.len())).max(1);
        let first = self.selected.saturating_sub(shown - 1);
        let columns =
            self.entries.iter().map(|entry| entry.label.chars().count()).max().unwrap_or(0);
        let columns = columns.min(width / 2);
        for (index, entry) in self.entries.iter().enumerate().skip(first).take(shown) {
            let label = fit(&entry.label, columns.max(8));
            let free = columns.saturating_sub(label.chars().count());
            let detail = format!("{}  {}", " ".repeat(free), entry.detail);
            let detail = fit(&detail, width.saturating_sub(label.chars().count() + 4));
            let (sign, style) = if index == self.selected {
                ("  › ", Style::new().fg(Color::Cyan).add_modifier(Modifier::BOLD))
            } else {
                ("    ", Style::new())
            };
            lines.push(Line::from(vec![
                Span::styled(sign, style),
                Span::styled(label, style),
                Span::styled(detail, dim),
            ]));
        }
        if self.entries.len() > shown {
            lines.push(Line::styled(
                format!("    {} of {}", self.selected + 1, self.entries.len()),
                dim,
            ));
        }
        lines
    }
}
