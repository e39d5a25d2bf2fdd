//! A long text on the whole terminal, with search. The alternate screen holds it, so that the scrollback is as before
//! when it is closed.

use antiphon_view::display::escaped;
use antiphon_view::text::fit;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::{Line, Span};

use crate::document::Entry;
use crate::inline_screen::Size;

/// Characters of a text that is searched for.
const SEARCH_CHARS_MAX: usize = 200;

/// A transcript that is read.
pub(crate) struct Pager {
    title: String,
    entries: Vec<Entry>,
    lines: Vec<Line<'static>>,
    size: Size,
    /// Index of the first line that is shown.
    top: usize,
    /// The last lines stay in view when more are added.
    follows_end: bool,
    search: Search,
}

/// What is searched for.
#[derive(Debug, Default)]
struct Search {
    /// What is typed behind the slash, until Enter.
    typed: Option<String>,
    text: String,
    /// The lines with the text.
    found: Vec<usize>,
    /// The one that was shown last.
    shown: Option<usize>,
}

/// Whether the pager stays open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PagerNext {
    Stay,
    Close,
}

impl Pager {
    /// Shows the end of the entries.
    pub(crate) fn new(title: String, entries: Vec<Entry>, size: Size) -> Self {
        let mut pager = Self {
            title,
            entries,
            lines: Vec::new(),
            size,
            top: 0,
            follows_end: true,
            search: Search::default(),
        };
        pager.resize(size);
        pager
    }

    /// Lines are broken anew; the same part stays in view.
    pub(crate) fn resize(&mut self, size: Size) {
        let part = self.top * 1000 / self.lines.len().max(1);
        if self.size.columns != size.columns || self.lines.is_empty() {
            self.lines = self.entries.iter().flat_map(|entry| entry.lines(size.columns)).collect();
            self.top = part * self.lines.len() / 1000;
        }
        self.size = size;
        self.find();
        self.stay_within();
    }

    /// Adds what happened meanwhile.
    pub(crate) fn add(&mut self, entry: Entry) {
        self.lines.extend(entry.lines(self.size.columns));
        self.entries.push(entry);
        self.find();
        self.stay_within();
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
            KeyCode::Home | KeyCode::Char('g') => self.up(usize::MAX),
            KeyCode::End | KeyCode::Char('G') => self.down(usize::MAX),
            KeyCode::Char('/') => self.search.typed = Some(String::new()),
            KeyCode::Char('n') => self.next_found(),
            KeyCode::Char('N') => self.previous_found(),
            _ => {}
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
                    self.search = Search { text, ..Search::default() };
                    self.find();
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

    fn find(&mut self) {
        if self.search.text.is_empty() {
            return;
        }
        let text = self.search.text.to_ascii_lowercase();
        let has = |line: &Line<'_>| line.to_string().to_ascii_lowercase().contains(&text);
        let found = self.lines.iter().enumerate().filter(|(_, line)| has(line));
        self.search.found = found.map(|(index, _)| index).collect();
    }

    fn next_found(&mut self) {
        let from = self.search.shown.map_or(self.top, |shown| shown + 1);
        let next = self.search.found.iter().find(|index| **index >= from);
        self.show_found(next.or(self.search.found.first()).copied());
    }

    fn previous_found(&mut self) {
        let before = self.search.shown.unwrap_or(self.top);
        let previous = self.search.found.iter().rfind(|index| **index < before);
        self.show_found(previous.or(self.search.found.last()).copied());
    }

    fn show_found(&mut self, found: Option<usize>) {
        self.search.shown = found;
        if let Some(index) = found {
            self.follows_end = false;
            self.top = index.saturating_sub(self.rows() / 3);
            self.stay_within();
        }
    }

    fn down(&mut self, count: usize) {
        self.top = self.top.saturating_add(count);
        self.follows_end = self.top >= self.last_top();
        self.stay_within();
    }

    fn up(&mut self, count: usize) {
        self.top = self.top.saturating_sub(count);
        self.follows_end = false;
    }

    fn rows(&self) -> usize {
        self.size.rows.saturating_sub(1).max(1)
    }

    fn last_top(&self) -> usize {
        self.lines.len().saturating_sub(self.rows())
    }

    fn stay_within(&mut self) {
        self.top = if self.follows_end { self.last_top() } else { self.top.min(self.last_top()) };
    }

    /// The rows of the screen: the text, and one that says where it is.
    pub(crate) fn screen(&self) -> Vec<Line<'static>> {
        let shown = self.lines.iter().enumerate().skip(self.top).take(self.rows());
        let mut rows: Vec<Line<'static>> =
            shown.map(|(index, line)| self.marked(index, line)).collect();
        rows.resize(self.rows(), Line::default());
        rows.push(self.state());
        rows
    }

    /// A line with the searched text marked.
    fn marked(&self, index: usize, line: &Line<'static>) -> Line<'static> {
        if self.search.found.binary_search(&index).is_err() {
            return line.clone();
        }
        let text = line.to_string().to_ascii_lowercase();
        let searched = self.search.text.to_ascii_lowercase();
        let starts: Vec<usize> = text.match_indices(&searched).map(|(at, _)| at).collect();
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

    fn state(&self) -> Line<'static> {
        let last = (self.top + self.rows()).min(self.lines.len());
        let place = format!("{} · {last} of {} lines", self.title, self.lines.len());
        let search = &self.search;
        let rest = match (&search.typed, search.text.as_str(), search.found.len()) {
            (Some(typed), ..) => {
                return Line::raw(fit(&format!("/{}", escaped(typed)), self.size.columns));
            }
            (None, "", _) => "/ searches, q closes".to_owned(),
            (None, text, 0) => format!("`{}` is not here", escaped(text)),
            (None, text, count) => {
                let at = search.shown.and_then(|shown| search.found.binary_search(&shown).ok());
                let at = at.map_or(0, |at| at + 1);
                format!("`{}` {at} of {count}, n N, q closes", escaped(text))
            }
        };
        let style = Style::new().add_modifier(Modifier::REVERSED);
        Line::styled(fit(&format!("{rest} · {place}"), self.size.columns), style)
    }
}

#[cfg(test)]
mod tests;
