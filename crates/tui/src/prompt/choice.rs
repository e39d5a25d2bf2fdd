//! A list beneath the prompt to choose from: completions of what is typed, sessions, tasks, agents.

use antiphon_view::display::escaped;
use antiphon_view::text::{self, fit};
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

/// Characters that a list is narrowed by.
const FILTER_CHARS_MAX: usize = 100;

/// Entries, one of which is selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChoiceList<V> {
    pub(crate) title: String,
    entries: Vec<Choice<V>>,
    /// What was typed to narrow the list.
    filter: String,
    /// Indexes of the entries that match, the best first.
    matching: Vec<usize>,
    selected: usize,
}

impl<V: Clone> ChoiceList<V> {
    /// A list; `None` without entries.
    pub(crate) fn new(title: &str, entries: Vec<Choice<V>>) -> Option<Self> {
        let matching = (0..entries.len()).collect();
        let (title, filter) = (title.to_owned(), String::new());
        let list = Self { title, entries, filter, matching, selected: 0 };
        (!list.entries.is_empty()).then_some(list)
    }

    pub(crate) fn up(&mut self) {
        let last = self.matching.len().saturating_sub(1);
        self.selected = self.selected.checked_sub(1).unwrap_or(last);
    }

    pub(crate) fn down(&mut self) {
        self.selected = (self.selected + 1) % self.matching.len().max(1);
    }

    /// The selected entry; `None` when no entry matches what was typed.
    pub(crate) fn selected(&self) -> Option<&Choice<V>> {
        self.entries.get(*self.matching.get(self.selected)?)
    }

    /// Narrows the list by one more character.
    pub(crate) fn narrow(&mut self, c: char) {
        if self.filter.chars().count() < FILTER_CHARS_MAX {
            self.filter.push(c);
            self.find();
        }
    }

    /// Takes back the last character.
    pub(crate) fn widen(&mut self) {
        self.filter.pop();
        self.find();
    }

    /// Adds entries behind the others. The same one stays selected.
    pub(crate) fn add(&mut self, entries: impl IntoIterator<Item = Choice<V>>) {
        let selected = self.matching.get(self.selected).copied();
        self.entries.extend(entries);
        self.find();
        let place = selected.and_then(|index| self.matching.iter().position(|it| *it == index));
        self.selected = place.unwrap_or(0);
    }

    fn find(&mut self) {
        let typed = self.filter.to_lowercase();
        let mut matching: Vec<(u8, usize)> = self
            .entries
            .iter()
            .enumerate()
            .filter_map(|(index, entry)| Some((rank(&entry.label, &entry.detail, &typed)?, index)))
            .collect();
        matching.sort_unstable();
        self.matching = matching.into_iter().map(|(_, index)| index).collect();
        self.selected = 0;
    }

    /// The entries around the selected one.
    pub(crate) fn lines(&self, width: usize, rows_max: usize) -> Vec<Line<'static>> {
        let dim = Style::new().add_modifier(Modifier::DIM);
        let mut lines = Vec::new();
        if !self.title.is_empty() {
            let typed = if self.filter.is_empty() { "type to search" } else { &self.filter };
            let title = format!("{}: {}", self.title, escaped(typed));
            lines.push(Line::styled(fit(&title, width), dim));
        }
        if self.matching.is_empty() {
            lines.push(Line::styled("    nothing matches", dim));
            return lines;
        }
        let shown = SHOWN.min(rows_max.saturating_sub(lines.len())).max(1);
        let first = self.selected.saturating_sub(shown - 1);
        let visible = self.matching.iter().map(|index| &self.entries[*index]);
        let visible = visible.enumerate().skip(first).take(shown);
        let columns =
            visible.clone().map(|(_, entry)| text::columns(&entry.label)).max().unwrap_or(0);
        // Labels alone take the whole row.
        let has_details = visible.clone().any(|(_, entry)| !entry.detail.is_empty());
        let columns =
            columns.min(if has_details { width * 2 / 3 } else { width.saturating_sub(4) });
        for (index, entry) in visible {
            let label = fit(&entry.label, columns.max(8));
            let free = columns.saturating_sub(text::columns(&label));
            let detail = format!("{}  {}", " ".repeat(free), entry.detail);
            let detail = fit(&detail, width.saturating_sub(text::columns(&label) + 4));
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
        if self.matching.len() > shown {
            lines.push(Line::styled(
                format!("    {} of {}", self.selected + 1, self.matching.len()),
                dim,
            ));
        }
        lines
    }
}

/// How well an entry matches what is typed, in lower case: its label begins with it, has a word that does, contains it,
/// or it or what is behind it has every word of it.
fn rank(label: &str, detail: &str, typed: &str) -> Option<u8> {
    let label = label.to_lowercase();
    let name = label.trim_start_matches('/');
    if name.starts_with(typed) {
        return Some(0);
    }
    if label.match_indices(typed).any(|(at, _)| !label[..at].ends_with(char::is_alphanumeric)) {
        return Some(1);
    }
    if label.contains(typed) {
        return Some(2);
    }
    let detail = detail.to_lowercase();
    let has = |word: &str| label.contains(word) || detail.contains(word);
    typed.split_whitespace().all(has).then_some(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_stand_in_one_column_behind_labels_of_any_width() {
        let entry = |label: &str| Choice {
            label: label.to_owned(),
            detail: "detail".to_owned(),
            value: (),
        };
        let list = ChoiceList::new("", vec![entry("漢字の題名"), entry("plain title")]).unwrap();
        for line in list.lines(40, 8) {
            let before = line.to_string().split_once("detail").unwrap().0.to_owned();
            assert_eq!(text::columns(&before), 4 + 11 + 2);
        }
        for line in list.lines(20, 8) {
            assert!(text::columns(&line.to_string()) <= 20, "{line}");
        }
    }

    #[test]
    fn typing_narrows_the_list_and_the_best_match_is_first() {
        let entry = |label: &str, detail: &str| Choice {
            label: label.to_owned(),
            detail: detail.to_owned(),
            value: label.to_owned(),
        };
        let entries =
            vec![entry("undo", "a command"), entry("src/do.rs", "a file"), entry("docs", "a file")];
        let mut list = ChoiceList::new("all", entries).unwrap();
        "do".chars().for_each(|c| list.narrow(c));
        assert_eq!(list.selected().unwrap().value, "docs");
        list.down();
        assert_eq!(list.selected().unwrap().value, "src/do.rs");
        " file".chars().for_each(|c| list.narrow(c));
        list.up();
        assert_eq!(list.selected().unwrap().value, "docs");
        list.narrow('?');
        assert_eq!(list.selected(), None);
        list.down();
        assert_eq!(list.lines(40, 8)[1].to_string(), "    nothing matches");
        list.widen();
        assert!(list.selected().is_some());
    }
}
