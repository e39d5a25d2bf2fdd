//! The rows of a prompt in the width of the terminal, and the cursor among them.

use antiphon_view::text::fit;
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::Composer;
use crate::inline_screen::Cursor;

/// Stands before the first row; the others are indented by as many columns.
const PROMPT: &str = "› ";
const PROMPT_COLUMNS: usize = 2;

/// A row: the bytes of the text that it shows.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    start: usize,
    end: usize,
}

/// A prompt in rows.
pub(crate) struct ComposerView<'a> {
    composer: &'a Composer,
    /// Columns of the terminal.
    width: usize,
    rows: Vec<Row>,
    /// Row and column of the cursor, without the prompt's sign.
    cursor: Cursor,
}

impl<'a> ComposerView<'a> {
    pub(crate) fn new(composer: &'a Composer, width: usize) -> Self {
        let columns = width.saturating_sub(PROMPT_COLUMNS + 1).max(1);
        let mut rows = Vec::new();
        let (mut start, mut used) = (0, 0);
        let mut cursor = Cursor { row: 0, column: 0 };
        for (at, grapheme) in composer.text.grapheme_indices(true) {
            let wide = shown(grapheme).width();
            if grapheme != "\n" && used + wide > columns {
                rows.push(Row { start, end: at });
                (start, used) = (at, 0);
            }
            if at == composer.cursor {
                cursor = Cursor { row: rows.len(), column: used };
            }
            if grapheme == "\n" {
                rows.push(Row { start, end: at });
                (start, used) = (at + 1, 0);
            } else {
                used += wide;
            }
        }
        if composer.cursor == composer.text.len() {
            cursor = Cursor { row: rows.len(), column: used };
        }
        rows.push(Row { start, end: composer.text.len() });
        Self { composer, width, rows, cursor }
    }

    /// At most `rows_max` rows around the cursor, and the cursor among them. `hint` stands in an empty prompt.
    pub(crate) fn lines(&self, rows_max: usize, hint: &str) -> (Vec<Line<'static>>, Cursor) {
        let rows_max = rows_max.max(1);
        let first = self.cursor.row.saturating_sub(rows_max - 1);
        let sign = Style::new().fg(Color::Cyan).add_modifier(Modifier::BOLD);
        let shown_rows = self.rows.iter().enumerate().skip(first).take(rows_max);
        let mut lines: Vec<Line<'static>> = shown_rows
            .map(|(index, row)| {
                let before = if index == 0 { PROMPT } else { "  " };
                let text: String =
                    self.composer.text[row.start..row.end].graphemes(true).map(shown).collect();
                Line::from(vec![Span::styled(before, sign), Span::raw(text)])
            })
            .collect();
        if self.composer.is_empty() {
            let hint = fit(hint, self.width.saturating_sub(PROMPT_COLUMNS));
            let hint = Span::styled(hint, Style::new().add_modifier(Modifier::DIM));
            lines = vec![Line::from(vec![Span::styled(PROMPT, sign), hint])];
        }
        let cursor =
            Cursor { row: self.cursor.row - first, column: self.cursor.column + PROMPT_COLUMNS };
        (lines, cursor)
    }

    /// The byte in the row above or below the cursor, in the same column; `None` at the first or last row.
    pub(crate) fn vertical(&self, down: bool) -> Option<usize> {
        let row = if down { self.cursor.row + 1 } else { self.cursor.row.checked_sub(1)? };
        let row = self.rows.get(row)?;
        let mut used = 0;
        for (at, grapheme) in self.composer.text[row.start..row.end].grapheme_indices(true) {
            if used >= self.cursor.column {
                return Some(row.start + at);
            }
            used += shown(grapheme).width();
        }
        Some(row.end)
    }
}

/// A character of the prompt as it is shown: characters that control the terminal or turn text take one visible column.
fn shown(grapheme: &str) -> &str {
    match grapheme {
        "\t" => "  ",
        _ if grapheme.chars().any(|c| c.is_control() || turns_text(c)) => "·",
        _ => grapheme,
    }
}

/// Whether a character changes the direction of the text behind it, or is a hidden tag.
fn turns_text(c: char) -> bool {
    matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}'
    )
}
