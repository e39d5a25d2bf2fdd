//! Breaks styled lines at word boundaries, by display width: a wide character takes two columns, a combining one none.

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// The line in pieces of at most `width` columns. `hanging` columns of blanks stand before each piece but the first.
pub(crate) fn wrap(line: &Line<'_>, width: usize, hanging: usize) -> Vec<Line<'static>> {
    let width = width.max(1);
    let hanging = if hanging * 2 < width { hanging } else { 0 };
    let mut wrapped = Wrapped { lines: Vec::new(), current: Vec::new(), used: 0, width, hanging };
    for (word, style) in words(line) {
        wrapped.word(word, style);
    }
    wrapped.end_line();
    for piece in &mut wrapped.lines {
        piece.style = line.style;
    }
    wrapped.lines
}

/// Words and the blanks between them, each with its style.
fn words<'a>(line: &'a Line<'_>) -> impl Iterator<Item = (&'a str, Style)> {
    line.spans
        .iter()
        .flat_map(|span| span.content.split_word_bounds().map(move |word| (word, span.style)))
}

struct Wrapped {
    lines: Vec<Line<'static>>,
    current: Vec<Span<'static>>,
    used: usize,
    width: usize,
    hanging: usize,
}

impl Wrapped {
    fn word(&mut self, word: &str, style: Style) {
        let columns = word.width();
        if self.used + columns <= self.width {
            return self.push(word, columns, style);
        }
        if word.trim().is_empty() {
            // Blanks at the end of a line are not shown.
            return self.next_line();
        }
        let indent = if self.lines.is_empty() && self.used == 0 { 0 } else { self.hanging };
        if indent + columns <= self.width {
            self.next_line();
            return self.push(word, columns, style);
        }
        for grapheme in word.graphemes(true) {
            let columns = grapheme.width();
            if self.used + columns > self.width {
                self.next_line();
            }
            self.push(grapheme, columns, style);
        }
    }

    fn push(&mut self, text: &str, columns: usize, style: Style) {
        let starts_piece = self.used == self.hanging && !self.lines.is_empty();
        if starts_piece && text.trim().is_empty() {
            return;
        }
        self.used += columns;
        match self.current.last_mut() {
            Some(last) if last.style == style => last.content.to_mut().push_str(text),
            Some(_) | None => self.current.push(Span::styled(text.to_owned(), style)),
        }
    }

    fn next_line(&mut self) {
        self.end_line();
        if self.hanging > 0 {
            self.current.push(Span::raw(" ".repeat(self.hanging)));
        }
        self.used = self.hanging;
    }

    fn end_line(&mut self) {
        let mut spans = std::mem::take(&mut self.current);
        if let Some(last) = spans.last_mut() {
            let end = last.content.trim_end().len();
            last.content.to_mut().truncate(end);
        }
        self.lines.push(Line::from(spans));
        self.used = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str, width: usize, hanging: usize) -> Vec<String> {
        wrap(&Line::raw(text), width, hanging).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_line_breaks_between_words() {
        assert_eq!(texts("one two three", 8, 0), ["one two", "three"]);
    }

    #[test]
    fn a_word_that_is_too_long_breaks_within() {
        assert_eq!(texts("abcdefghij", 4, 0), ["abcd", "efgh", "ij"]);
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(texts("日本語のテキスト", 6, 0), ["日本語", "のテキ", "スト"]);
    }

    #[test]
    fn later_pieces_are_indented() {
        assert_eq!(texts("• one two three", 9, 2), ["• one two", "  three"]);
    }

    #[test]
    fn no_piece_is_wider_than_the_terminal() {
        for width in 1..20 {
            for line in wrap(&Line::raw("a 日本語 👩‍👩‍👧 e\u{301}e\u{301} some words, more"), width, 2)
            {
                assert!(line.width() <= width.max(2), "{line:?} in {width}");
            }
        }
    }
}
