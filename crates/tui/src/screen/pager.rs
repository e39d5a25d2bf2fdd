//! A long text on the whole terminal, with search. The alternate screen holds it, so that the scrollback is as before
//! when it is closed.
//!
//! Only what is shown is formatted: opening, resizing and scrolling cost the same at every length. A search reads the
//! text of every entry, and formats those that may have what is searched for, up to the first line that has it.

use std::collections::BTreeMap;
use std::sync::Arc;

use antiphon_view::display::escaped;
use antiphon_view::text::fit;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::{Line, Span};

use crate::document::Entry;
use crate::inline_screen::Size;

/// Characters of a text that is searched for.
const SEARCH_CHARS_MAX: usize = 200;

/// Formatted lines that are kept. When more are, all but those of the last entry are formatted again once they are shown.
const KEPT_LINES_MAX: usize = 20_000;

/// A transcript that is read.
pub(crate) struct Pager {
    title: String,
    entries: Vec<Entry>,
    /// Bytes of the texts of each entry and of all before it.
    ends: Vec<usize>,
    size: Size,
    formatted: FormattedEntries,
    /// The first line that is shown.
    top: Place,
    /// The last lines stay in view when more are added.
    follows_end: bool,
    search: Search,
}

/// A line of the transcript.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    entry: usize,
    line: usize,
}

/// Lines of entries that were shown.
#[derive(Default)]
struct FormattedEntries {
    entries: BTreeMap<usize, Arc<Vec<Line<'static>>>>,
    lines: usize,
}

/// What is searched for.
#[derive(Debug, Default)]
struct Search {
    /// What is typed behind the slash, until Enter.
    typed: Option<String>,
    /// In lower case.
    text: String,
    /// The line with the text that was shown last.
    shown: Option<Place>,
    is_absent: bool,
}

/// Whether the pager stays open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PagerNext {
    Stay,
    Close,
    /// The key does nothing here.
    Unknown,
}

/// What the keys do, for the last row.
pub(crate) const KEYS: &str = "q closes, / searches";

impl Pager {
    /// Shows the end of the entries.
    pub(crate) fn new(title: String, entries: Vec<Entry>, size: Size) -> Self {
        let mut pager = Self {
            title,
            entries: Vec::new(),
            ends: Vec::new(),
            size,
            formatted: FormattedEntries::default(),
            top: Place::default(),
            follows_end: true,
            search: Search::default(),
        };
        for entry in entries {
            pager.push(entry);
        }
        pager.stay_within();
        pager
    }

    /// Lines are broken anew; the same part stays in view.
    pub(crate) fn resize(&mut self, size: Size) {
        if self.size.columns != size.columns {
            let before = self.lines(self.top.entry).len().max(1);
            self.formatted = FormattedEntries::default();
            self.size = size;
            self.top.line = self.top.line * self.lines(self.top.entry).len() / before;
            self.search.shown = None;
        }
        self.size = size;
        self.stay_within();
    }

    /// Adds what happened meanwhile.
    pub(crate) fn add(&mut self, entry: Entry) {
        self.push(entry);
        self.stay_within();
    }

    fn push(&mut self, entry: Entry) {
        let before = self.ends.last().copied().unwrap_or(0);
        self.ends.push(before + entry.bytes());
        self.entries.push(entry);
    }

    /// The lines of an entry.
    fn lines(&mut self, entry: usize) -> Arc<Vec<Line<'static>>> {
        if let Some(lines) = self.formatted.entries.get(&entry) {
            return Arc::clone(lines);
        }
        let Some(formatted) = self.entries.get(entry) else { return Arc::default() };
        let lines = Arc::new(formatted.lines(self.size.columns));
        if self.formatted.lines > KEPT_LINES_MAX {
            self.formatted = FormattedEntries::default();
        }
        self.formatted.lines += lines.len();
        self.formatted.entries.insert(entry, Arc::clone(&lines));
        lines
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "most keys do nothing here")]
    pub(crate) fn key(&mut self, key: KeyEvent) -> PagerNext {
        if self.search.typed.is_some() {
            self.search_key(key);
            return PagerNext::Stay;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let page = self.rows().saturating_sub(1).max(1);
        match key.code {
            KeyCode::Char('c' | 't') if control => return PagerNext::Close,
            KeyCode::Char('q') | KeyCode::Esc => return PagerNext::Close,
            KeyCode::Char('d') if control => self.down(page / 2),
            KeyCode::Char('u') if control => self.up(page / 2),
            KeyCode::Down | KeyCode::Char('j') | KeyCode::Enter => self.down(1),
            KeyCode::Up | KeyCode::Char('k') => self.up(1),
            KeyCode::PageDown | KeyCode::Char(' ' | 'f') => self.down(page),
            KeyCode::PageUp | KeyCode::Char('b') => self.up(page),
            KeyCode::Home | KeyCode::Char('g') => {
                (self.top, self.follows_end) = (Place::default(), false);
            }
            KeyCode::End | KeyCode::Char('G') => {
                (self.top, self.follows_end) = (self.last_top(), true);
            }
            KeyCode::Char('/') => self.search.typed = Some(String::new()),
            KeyCode::Char('n') => self.next_found(),
            KeyCode::Char('N') => self.previous_found(),
            _ => return PagerNext::Unknown,
        }
        PagerNext::Stay
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "most keys do nothing here")]
    fn search_key(&mut self, key: KeyEvent) {
        let Some(typed) = &mut self.search.typed else { return };
        match key.code {
            KeyCode::Esc => self.search.typed = None,
            KeyCode::Backspace if typed.pop().is_none() => self.search.typed = None,
            KeyCode::Enter => {
                // An empty text searches again for the last one.
                if let Some(text) = self.search.typed.take().filter(|text| !text.is_empty()) {
                    self.search = Search { text: text.to_ascii_lowercase(), ..Search::default() };
                }
                self.next_found();
            }
            KeyCode::Char(c)
                if !key.modifiers.contains(KeyModifiers::CONTROL)
                    && typed.chars().count() < SEARCH_CHARS_MAX =>
            {
                typed.push(c);
            }
            _ => {}
        }
    }

    fn next_found(&mut self) {
        let from =
            self.search.shown.map_or(self.top, |shown| Place { line: shown.line + 1, ..shown });
        // Behind the last entry it begins again, up to where it began.
        let entries = (from.entry..self.entries.len()).chain(0..=from.entry);
        let mut first = from.line;
        for entry in entries {
            let lines = self.lines_with_text(entry);
            if let Some(line) = lines.into_iter().find(|line| *line >= first) {
                return self.show_found(Place { entry, line });
            }
            first = 0;
        }
        self.search.is_absent = true;
    }

    fn previous_found(&mut self) {
        let before = self.search.shown.unwrap_or(self.top);
        let entries = (0..=before.entry).rev().chain((before.entry..self.entries.len()).rev());
        let mut last = before.line;
        for entry in entries {
            let lines = self.lines_with_text(entry);
            if let Some(line) = lines.into_iter().rfind(|line| *line < last) {
                return self.show_found(Place { entry, line });
            }
            last = usize::MAX;
        }
        self.search.is_absent = true;
    }

    /// The lines of an entry that have the searched text.
    fn lines_with_text(&mut self, entry: usize) -> Vec<usize> {
        let text = self.search.text.clone();
        if text.is_empty() || !self.entries.get(entry).is_some_and(|entry| entry.may_have(&text)) {
            return Vec::new();
        }
        let has = |line: &Line<'_>| line.to_string().to_ascii_lowercase().contains(&text);
        let lines = self.lines(entry);
        lines.iter().enumerate().filter(|(_, line)| has(line)).map(|(index, _)| index).collect()
    }

    fn show_found(&mut self, found: Place) {
        (self.search.shown, self.search.is_absent) = (Some(found), false);
        self.follows_end = false;
        self.top = self.above(found, self.rows() / 3);
        self.stay_within();
    }

    fn down(&mut self, count: usize) {
        let mut left = count;
        while left > 0 && self.top.entry < self.entries.len() {
            let lines = self.lines(self.top.entry).len();
            if self.top.line + left < lines {
                self.top.line += left;
                break;
            }
            left -= lines.saturating_sub(self.top.line);
            self.top = Place { entry: self.top.entry + 1, line: 0 };
        }
        let last = self.last_top();
        self.follows_end = self.top >= last;
        self.stay_within();
    }

    fn up(&mut self, count: usize) {
        self.top = self.above(self.top, count);
        self.follows_end = false;
    }

    /// The line so many lines above another one; the first one when there are fewer.
    fn above(&mut self, place: Place, count: usize) -> Place {
        let (mut place, mut left) = (place, count);
        while left > place.line {
            left -= place.line;
            let Some(entry) = place.entry.checked_sub(1) else { return Place::default() };
            place = Place { entry, line: self.lines(entry).len() };
        }
        Place { line: place.line - left, ..place }
    }

    fn rows(&self) -> usize {
        self.size.rows.saturating_sub(1).max(1)
    }

    /// The first line that is shown when the last one is.
    fn last_top(&mut self) -> Place {
        let end = Place { entry: self.entries.len(), line: 0 };
        self.above(end, self.rows())
    }

    fn stay_within(&mut self) {
        let last = self.last_top();
        self.top = if self.follows_end { last } else { self.top.min(last) };
    }

    /// The rows of the screen: the text, and one that says where it is.
    pub(crate) fn screen(&mut self, keys: &str) -> Vec<Line<'static>> {
        let mut rows: Vec<Line<'static>> = Vec::with_capacity(self.size.rows);
        let mut next = self.top;
        while rows.len() < self.rows() && next.entry < self.entries.len() {
            let lines = self.lines(next.entry);
            match lines.get(next.line) {
                Some(line) => {
                    rows.push(self.marked(line));
                    next.line += 1;
                }
                None => next = Place { entry: next.entry + 1, line: 0 },
            }
        }
        rows.resize(self.rows(), Line::default());
        rows.push(self.state(next, keys));
        rows
    }

    /// A line with the searched text marked.
    fn marked(&self, line: &Line<'static>) -> Line<'static> {
        let searched = &self.search.text;
        let text = line.to_string().to_ascii_lowercase();
        if searched.is_empty() || !text.contains(searched) {
            return line.clone();
        }
        let starts: Vec<usize> = text.match_indices(searched).map(|(at, _)| at).collect();
        let is_marked =
            |byte: usize| starts.iter().any(|at| (*at..*at + searched.len()).contains(&byte));
        let mut spans: Vec<Span<'static>> = Vec::new();
        let mut byte = 0;
        for span in &line.spans {
            for c in span.content.chars() {
                let style = if is_marked(byte) {
                    span.style.add_modifier(Modifier::REVERSED)
                } else {
                    span.style
                };
                match spans.last_mut() {
                    Some(last) if last.style == style => last.content.to_mut().push(c),
                    Some(_) | None => spans.push(Span::styled(c.to_string(), style)),
                }
                byte += c.len_utf8();
            }
        }
        Line::from(spans).style(line.style)
    }

    /// How much of the transcript is shown or above, by its bytes.
    fn percent(&mut self, next: Place) -> usize {
        let total = self.ends.last().copied().unwrap_or(0);
        let before = next.entry.checked_sub(1).and_then(|entry| self.ends.get(entry)).copied();
        let before = before.unwrap_or(0);
        let entry = self.ends.get(next.entry).map_or(0, |end| end - before);
        let lines = self.lines(next.entry).len().max(1);
        let shown = before + entry * next.line.min(lines) / lines;
        (shown * 100).checked_div(total).unwrap_or(100)
    }

    fn state(&mut self, next: Place, keys: &str) -> Line<'static> {
        let percent = self.percent(next);
        let place = format!("{} · {percent}%", self.title);
        let search = &self.search;
        let rest = match (&search.typed, search.text.as_str()) {
            (Some(typed), _) => {
                return Line::raw(fit(&format!("/{}", escaped(typed)), self.size.columns));
            }
            (None, "") => keys.to_owned(),
            (None, text) if search.is_absent => format!("`{}` is not here", escaped(text)),
            (None, text) => format!("`{}`: n N, q closes", escaped(text)),
        };
        let style = Style::new().add_modifier(Modifier::REVERSED);
        Line::styled(fit(&format!("{rest} · {place}"), self.size.columns), style)
    }
}

#[cfg(test)]
mod tests;
