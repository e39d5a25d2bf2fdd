//! Markdown of a model as styled lines of a given width.
//!
//! The text is untrusted. The caller has escaped control characters in it; links show their address, so that no text
//! hides where it leads.

mod table;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span};

use crate::highlight::Highlighter;
use crate::wrap::wrap;
use table::Table;

/// Lists and quotes within each other that are indented. Deeper ones are shown at this depth.
const DEPTH_MAX: usize = 8;

pub(crate) const OPTIONS: Options =
    Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH).union(Options::ENABLE_TASKLISTS);

/// The lines of a text. Blocks are divided by blank lines.
pub(crate) fn lines(text: &str, width: usize) -> Vec<Line<'static>> {
    let mut renderer = Renderer::new(width);
    for event in Parser::new_ext(text, OPTIONS) {
        renderer.event(event);
    }
    renderer.flush();
    renderer.lines
}

/// Where the last top-level block of a text begins: the blocks before it are complete, whatever follows.
#[expect(clippy::wildcard_enum_match_arm, reason = "only where blocks begin and end counts")]
pub(crate) fn last_block(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut last = 0;
    for (event, range) in Parser::new_ext(text, OPTIONS).into_offset_iter() {
        match event {
            Event::Start(_) => {
                if depth == 0 {
                    last = range.start;
                }
                depth += 1;
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            _ if depth == 0 => last = range.start,
            _ => {}
        }
    }
    last
}

/// A list or a quote around the current block.
enum Container {
    Quote,
    /// The number of the next item; `None`: bullets.
    List(Option<u64>),
    /// Columns that the lines of an item are indented by.
    Item(usize),
}

struct Renderer {
    lines: Vec<Line<'static>>,
    width: usize,
    containers: Vec<Container>,
    styles: Vec<Style>,
    spans: Vec<Span<'static>>,
    /// Stands before the first line of an item.
    marker: Option<String>,
    /// Language and text of a code block.
    code: Option<(String, String)>,
    table: Option<Table>,
    link: Option<String>,
    /// A blank line stands before the next block.
    needs_blank: bool,
}

impl Renderer {
    fn new(width: usize) -> Self {
        Self {
            lines: Vec::new(),
            width,
            containers: Vec::new(),
            styles: vec![Style::new()],
            spans: Vec::new(),
            marker: None,
            code: None,
            table: None,
            link: None,
            needs_blank: false,
        }
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.text(&text, Style::new()),
            },
            Event::Code(code) => self.text(&code, Style::new().fg(Color::Cyan)),
            Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text) => self.text(&text, Style::new()),
            Event::FootnoteReference(name) => self.text(&format!("[{name}]"), Style::new()),
            Event::SoftBreak => self.text(" ", Style::new()),
            Event::HardBreak => self.flush_line(),
            Event::Rule => {
                self.block();
                let rule = "─".repeat(self.width.min(40));
                self.lines.push(Line::styled(rule, Style::new().add_modifier(Modifier::DIM)));
                self.needs_blank = true;
            }
            Event::TaskListMarker(done) => {
                self.text(if done { "☑ " } else { "☐ " }, Style::new());
            }
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "other tags are shown as their text")]
    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.block(),
            Tag::Heading { level, .. } => {
                self.block();
                let style = Style::new().add_modifier(Modifier::BOLD);
                self.push_style(match level {
                    HeadingLevel::H1 => style.fg(Color::Magenta),
                    HeadingLevel::H2 => style.fg(Color::Cyan),
                    _ => style,
                });
            }
            Tag::BlockQuote(_) => {
                self.block();
                self.containers.push(Container::Quote);
            }
            Tag::CodeBlock(kind) => {
                self.block();
                let language = match kind {
                    CodeBlockKind::Fenced(language) => language.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(start) => {
                self.flush_line();
                if self.containers.is_empty() {
                    self.block();
                }
                self.containers.push(Container::List(start));
            }
            Tag::Item => self.start_item(),
            Tag::Table(alignments) => {
                self.block();
                self.table = Some(Table::new(alignments));
            }
            Tag::Emphasis => self.push_style(Style::new().add_modifier(Modifier::ITALIC)),
            Tag::Strong => self.push_style(Style::new().add_modifier(Modifier::BOLD)),
            Tag::Strikethrough => {
                self.push_style(Style::new().add_modifier(Modifier::CROSSED_OUT));
            }
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.link = Some(dest_url.to_string());
                self.push_style(Style::new().add_modifier(Modifier::UNDERLINED));
            }
            _ => {}
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "other tags are shown as their text")]
    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => {
                self.flush_line();
                self.needs_blank = !self.is_in_item();
            }
            TagEnd::Heading(_) => {
                self.pop_style();
                self.flush_line();
                self.needs_blank = true;
            }
            TagEnd::BlockQuote(_) => {
                self.flush_line();
                self.containers.pop();
                self.needs_blank = true;
            }
            TagEnd::CodeBlock => self.code_block(),
            TagEnd::List(_) => {
                self.flush_line();
                self.containers.pop();
                self.needs_blank = self.containers.is_empty();
            }
            TagEnd::Item => {
                self.flush_line();
                self.marker = None;
                self.needs_blank = false;
                self.containers.pop();
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.spans);
                if let Some(table) = &mut self.table {
                    table.cell(cell);
                }
            }
            TagEnd::TableHead | TagEnd::TableRow => {
                if let Some(table) = &mut self.table {
                    table.end_row();
                }
            }
            TagEnd::Table => {
                let width = self.width.saturating_sub(self.indent());
                let rows = self.table.take().map(|table| table.lines(width));
                for row in rows.into_iter().flatten() {
                    self.push_line(row);
                }
                self.needs_blank = true;
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => self.pop_style(),
            TagEnd::Link | TagEnd::Image => self.end_link(),
            _ => {}
        }
    }

    fn start_item(&mut self) {
        self.flush_line();
        let marker = match self.containers.last_mut() {
            Some(Container::List(Some(number))) => {
                let marker = format!("{number}. ");
                *number += 1;
                marker
            }
            Some(Container::List(None) | Container::Quote | Container::Item(_)) | None => {
                "• ".to_owned()
            }
        };
        self.containers.push(Container::Item(marker.chars().count()));
        self.marker = Some(marker);
    }

    fn end_link(&mut self) {
        self.pop_style();
        let Some(address) = self.link.take() else { return };
        let shown: String = self.spans.iter().map(|span| span.content.as_ref()).collect();
        if !shown.ends_with(address.as_str()) {
            self.text(&format!(" ({address})"), Style::new().add_modifier(Modifier::DIM));
        }
    }

    fn code_block(&mut self) {
        let Some((language, code)) = self.code.take() else { return };
        if !language.is_empty() {
            self.push_line(language_line(&language));
        }
        let mut highlighter = Highlighter::new(&language);
        for line in code.lines() {
            self.push_line(code_line(highlighter.line(line)));
        }
        self.needs_blank = !self.is_in_item();
    }

    fn text(&mut self, text: &str, style: Style) {
        let style = self.styles.last().copied().unwrap_or_default().patch(style);
        let text = text.replace(['\n', '\t'], " ");
        self.spans.push(Span::styled(text, style));
    }

    fn push_style(&mut self, style: Style) {
        let style = self.styles.last().copied().unwrap_or_default().patch(style);
        self.styles.push(style);
    }

    fn pop_style(&mut self) {
        if self.styles.len() > 1 {
            self.styles.pop();
        }
    }

    fn is_in_item(&self) -> bool {
        self.containers.iter().any(|container| matches!(container, Container::Item(_)))
    }

    /// Begins a block.
    fn block(&mut self) {
        self.flush_line();
        if std::mem::take(&mut self.needs_blank) && !self.lines.is_empty() {
            self.lines.push(Line::default());
        }
    }

    fn flush(&mut self) {
        if self.code.is_some() {
            self.code_block();
        }
        self.flush_line();
    }

    fn flush_line(&mut self) {
        if self.spans.is_empty() || self.table.is_some() {
            return;
        }
        let line = Line::from(std::mem::take(&mut self.spans));
        self.push_line(line);
    }

    /// Columns before the text of the current block.
    fn indent(&self) -> usize {
        let columns = self.containers.iter().take(DEPTH_MAX).map(|container| match container {
            Container::Quote => 2,
            Container::List(_) => 0,
            Container::Item(columns) => *columns,
        });
        columns.sum::<usize>().min(self.width / 2)
    }

    /// Adds a line of the current block, behind bars, indentation and marker.
    fn push_line(&mut self, line: Line<'static>) {
        let indent = self.indent();
        for piece in wrap(&line, self.width.saturating_sub(indent).max(1), 0) {
            let mut spans =
                vec![Span::styled(self.prefix(indent), Style::new().add_modifier(Modifier::DIM))];
            spans.extend(piece.spans);
            self.lines.push(Line::from(spans).style(line.style));
        }
    }

    fn prefix(&mut self, indent: usize) -> String {
        let mut prefix = String::new();
        for container in self.containers.iter().take(DEPTH_MAX) {
            match container {
                Container::Quote => prefix.push_str("│ "),
                Container::List(_) => {}
                Container::Item(columns) => prefix.push_str(&" ".repeat(*columns)),
            }
        }
        if let Some(marker) = self.marker.take() {
            let columns = marker.chars().count();
            let kept = prefix.chars().count().saturating_sub(columns);
            prefix = prefix.chars().take(kept).collect::<String>() + &marker;
        }
        prefix.chars().take(indent).collect()
    }
}

/// The line above code that names its language.
pub(crate) fn language_line(language: &str) -> Line<'static> {
    Line::styled(format!("  {language}"), Style::new().add_modifier(Modifier::DIM))
}

/// A line of code.
pub(crate) fn code_line(mut spans: Vec<Span<'static>>) -> Line<'static> {
    for span in spans.iter_mut().filter(|span| span.content.contains('\t')) {
        span.content = expand_tabs(&span.content).into();
    }
    spans.insert(0, Span::raw("  "));
    Line::from(spans)
}

/// Tabs as blanks: the width of a tab is the terminal's affair.
pub(crate) fn expand_tabs(line: &str) -> String {
    line.replace('\t', "    ")
}

#[cfg(test)]
mod tests;
