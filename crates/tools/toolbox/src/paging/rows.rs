//! A window on a text: numbered lines from a given one on, as many as fit.
//!
//! The text arrives in pieces; only the lines to show are held.

use std::fmt::Write;

use memchr::{memchr, memchr_iter};

/// Most lines that are shown by default.
pub const ROWS_MAX: u64 = 2_000;

/// Most text that is shown at once, in bytes.
pub const ROWS_BYTES_MAX: usize = 256 * 1024;

/// Longest line that is shown whole, in characters.
pub const LINE_CHARS_MAX: usize = 2_000;

/// How to show a line over [`LINE_CHARS_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LongLines {
    /// The rest of the line is not shown.
    Cut,
    /// The line continues in the next row, which counts as a line.
    Wrapped,
}

/// Collects the rows to show.
#[derive(Debug)]
pub struct Rows {
    overlong: LongLines,
    first: u64,
    limit: u64,
    /// The number of the row that is being collected.
    number: u64,
    /// The part of that row that is shown.
    row: String,
    /// Characters of that row so far, shown or not.
    chars: usize,
    /// Whether that row has started: a text that ends with a line break has no row after it.
    started: bool,
    text: String,
    shown: u64,
    full: bool,
    cut: u64,
    crlf: bool,
}

/// The collected rows and what is known about the text.
#[derive(Debug, PartialEq, Eq)]
pub struct CollectedRows {
    /// The rows, one per line, each with its number.
    pub text: String,
    /// Number of rows in `text`.
    pub shown: u64,
    /// Number of rows of the text so far, including those not shown.
    pub total: u64,
    /// Number of shown rows whose end is cut.
    pub cut: u64,
    /// Whether lines end with CRLF.
    pub crlf: bool,
    /// Whether the last row ended with a line break.
    pub ends_with_line_break: bool,
}

impl Rows {
    /// Collects at most `limit` rows, from row `first` on, counted from 1.
    pub fn new(first: u64, limit: u64, overlong: LongLines) -> Self {
        Self {
            overlong,
            first: first.max(1),
            limit,
            number: 1,
            row: String::new(),
            chars: 0,
            started: false,
            text: String::new(),
            shown: 0,
            full: limit == 0,
            cut: 0,
            crlf: false,
        }
    }

    /// Takes the next piece of the text.
    pub fn push(&mut self, mut piece: &str) {
        while let Some(end) = memchr(b'\n', piece.as_bytes()) {
            self.take(&piece[..end]);
            self.crlf |= self.row.ends_with('\r');
            if self.row.ends_with('\r') {
                self.row.pop();
                self.chars -= 1;
            }
            self.end_row();
            piece = &piece[end + 1..];
        }
        if !piece.is_empty() {
            self.take(piece);
            self.started = true;
        }
    }

    /// Skips lines that are not shown. Returns the number of bytes skipped. Works on bytes: in UTF-8
    /// no other character contains a line break.
    pub(crate) fn skip(&mut self, bytes: &[u8]) -> usize {
        if self.overlong == LongLines::Wrapped {
            // A row may end within a line, so characters must be counted.
            return 0;
        }
        if let (true, Some(last)) = (self.full, bytes.last()) {
            self.number += memchr_iter(b'\n', bytes).count() as u64;
            self.started = *last != b'\n';
            return bytes.len();
        }
        let mut skipped = 0;
        while self.number < self.first {
            let Some(end) = memchr(b'\n', &bytes[skipped..]) else {
                self.started |= skipped < bytes.len();
                return bytes.len();
            };
            skipped += end + 1;
            self.number += 1;
            self.started = false;
        }
        skipped
    }

    /// Whether no more rows will be shown.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Ends the text and returns the rows.
    pub fn finish(mut self) -> CollectedRows {
        let ends_with_line_break = !self.started;
        if self.started {
            self.end_row();
        }
        CollectedRows {
            text: self.text,
            shown: self.shown,
            total: self.number - 1,
            cut: self.cut,
            crlf: self.crlf,
            ends_with_line_break,
        }
    }

    fn is_wanted(&self) -> bool {
        !self.full && self.number >= self.first
    }

    fn take(&mut self, part: &str) {
        match self.overlong {
            LongLines::Cut if !self.is_wanted() => {}
            LongLines::Cut => self.add(part),
            LongLines::Wrapped => {
                let mut rest = part;
                // A text never has more characters than bytes.
                while self.chars + rest.len() > LINE_CHARS_MAX {
                    let (fits, more) = split_at_char(rest, LINE_CHARS_MAX - self.chars);
                    self.add(fits);
                    if more.is_empty() {
                        return;
                    }
                    self.end_row();
                    rest = more;
                }
                self.add(rest);
            }
        }
    }

    fn add(&mut self, part: &str) {
        let count = part.chars().count();
        if self.is_wanted() && self.chars < LINE_CHARS_MAX {
            self.row.push_str(split_at_char(part, LINE_CHARS_MAX - self.chars).0);
        }
        self.chars += count;
    }

    fn end_row(&mut self) {
        if self.is_wanted() {
            let before = self.text.len();
            // Writing to a string does not fail.
            let _ = write!(self.text, "{:>6}\t{}", self.number, self.row);
            let is_cut = self.chars > LINE_CHARS_MAX;
            if is_cut {
                let _ = write!(self.text, "… [cut: this line has {} characters]", self.chars);
            }
            self.text.push('\n');
            if self.text.len() > ROWS_BYTES_MAX {
                self.text.truncate(before);
                self.full = true;
            } else {
                self.shown += 1;
                self.cut += u64::from(is_cut);
                self.full = self.shown == self.limit;
            }
        }
        self.number += 1;
        self.row.clear();
        self.chars = 0;
        self.started = false;
    }
}

/// The first `chars` characters, and the rest.
fn split_at_char(text: &str, chars: usize) -> (&str, &str) {
    if text.len() <= chars {
        return (text, "");
    }
    let at = text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
    text.split_at(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str, first: u64, limit: u64, overlong: LongLines) -> CollectedRows {
        let mut whole = Rows::new(first, limit, overlong);
        whole.push(text);
        let whole = whole.finish();
        // However the text is cut into pieces, the rows are the same.
        let mut pieces = Rows::new(first, limit, overlong);
        text.char_indices().for_each(|(at, c)| pieces.push(&text[at..at + c.len_utf8()]));
        assert_eq!(pieces.finish(), whole);
        whole
    }

    #[test]
    fn a_window_of_lines_is_shown_and_all_are_counted() {
        let found = rows("a\nb\nc\nd", 2, 2, LongLines::Cut);
        assert_eq!(found.text, "     2\tb\n     3\tc\n");
        assert_eq!((found.shown, found.total, found.ends_with_line_break), (2, 4, false));
    }

    #[test]
    fn a_last_line_break_starts_no_line() {
        assert_eq!(rows("a\n", 1, 9, LongLines::Cut).total, 1);
        assert_eq!(rows("a\n\n", 1, 9, LongLines::Cut).total, 2);
        assert_eq!(rows("", 1, 9, LongLines::Cut).total, 0);
    }

    #[test]
    fn crlf_line_ends_are_noted_and_not_shown() {
        let found = rows("a\r\nb\r\n", 1, 9, LongLines::Cut);
        assert_eq!(found.text, "     1\ta\n     2\tb\n");
        assert!(found.crlf);
    }

    #[test]
    fn a_long_line_is_cut_or_wrapped() {
        let text = format!("{}\nend\n", "é".repeat(LINE_CHARS_MAX + 5));
        let cut = rows(&text, 1, 9, LongLines::Cut);
        assert_eq!((cut.total, cut.cut), (2, 1));
        assert!(cut.text.contains("… [cut: this line has 2005 characters]\n     2\tend\n"));
        let wrapped = rows(&text, 2, 9, LongLines::Wrapped);
        assert_eq!(wrapped.text, "     2\tééééé\n     3\tend\n");
        let exact = rows(&"x".repeat(LINE_CHARS_MAX), 1, 9, LongLines::Wrapped);
        assert_eq!((exact.total, exact.cut), (1, 0));
    }

    #[test]
    fn no_more_is_shown_than_fits() {
        let line = "x".repeat(999);
        let found = rows(&format!("{line}\n").repeat(400), 1, 9_999, LongLines::Cut);
        assert!(found.text.len() <= ROWS_BYTES_MAX && found.text.len() > ROWS_BYTES_MAX - 1_100);
        assert_eq!(found.total, 400);
        assert!(found.shown < 400);
    }
}
