//! Numbers, times and lines of text in the form every interface shows them.

use std::time::Duration;

use chrono::TimeDelta;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::display::escaped;

/// Characters of a call's arguments, or of a line of output, that are shown.
const LINE_CHARS_MAX: usize = 120;

/// The first 120 characters of `text`, with `…` behind them when there are more.
pub fn cut(text: &str) -> String {
    let mut chars = text.chars();
    let mut cut: String = chars.by_ref().take(LINE_CHARS_MAX).collect();
    if chars.next().is_some() {
        cut.push('…');
    }
    cut
}

/// The columns that `text` takes on a terminal: a wide character takes two, a combining one none.
pub fn columns(text: &str) -> usize {
    text.width()
}

/// As much of `text` as a terminal shows in `width` columns; the last character is `…` when there is more.
pub fn fit(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let (mut start, mut used) = (String::new(), 1);
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        start.push(c);
    }
    if width == 0 { start } else { start + "…" }
}

/// Untrusted text on one line: each run of white space as one space, every other control and invisible character
/// escaped.
pub fn one_line(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    escaped(&words).into_owned()
}

/// `line` in pieces that a terminal shows in at most `columns` columns, broken anywhere.
pub fn break_line(line: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(2);
    let (mut pieces, mut used) = (vec![String::new()], 0);
    for c in line.chars() {
        // A tab takes as much as the terminal likes: `line` has none when it was escaped.
        let width = c.width().unwrap_or(columns);
        if used + width > columns {
            pieces.push(String::new());
            used = 0;
        }
        used += width;
        if let Some(piece) = pieces.last_mut() {
            piece.push(c);
        }
    }
    pieces
}

/// `text` in lines of at most `width` characters, broken between words where possible.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    if text.is_empty() {
        return vec![String::new()];
    }
    let width = width.max(1);
    let mut lines = Vec::new();
    for part in text.lines() {
        let (mut line, mut length) = (String::new(), 0);
        for word in part.split(' ') {
            let mut word: Vec<char> = word.chars().collect();
            if length > 0 && length + 1 + word.len() > width {
                lines.push(std::mem::take(&mut line));
                length = 0;
            }
            while word.len() > width {
                lines.push(word.drain(..width).collect());
            }
            if length > 0 {
                line.push(' ');
                length += 1;
            }
            length += word.len();
            line.extend(word);
        }
        lines.push(line);
    }
    lines
}

/// `1 line`, `2 lines`: the number of lines in `text`.
pub fn line_count(text: &str) -> String {
    count(text.lines().count() as u64, "line")
}

/// `1 turn`, `2 turns`.
pub fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// `812 bytes`, `3.4 MB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    let unit = UNITS.iter().find(|(unit, _)| bytes >= *unit);
    let Some((unit, name)) = unit else { return count(bytes, "byte") };
    let tenths = bytes / (unit / 10);
    format!("{}.{} {name}", tenths / 10, tenths % 10)
}

/// `0.4 s`, `12 s`, `3 min 20 s`.
pub fn elapsed(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", time.as_secs_f64()),
        10..120 => format!("{seconds} s"),
        _ => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

/// `12s`, `5m`, `3h`, `2d`. A negative time is `0s`.
pub fn age(time: TimeDelta) -> String {
    let seconds = time.num_seconds().max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Rows with aligned columns, each row on a line: cells are escaped whole.
pub fn table<R: AsRef<[String]>>(rows: &[R]) -> String {
    let cells = |row: &R| row.as_ref().iter().map(|cell| escaped(cell).into_owned()).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let mut widths: Vec<usize> = Vec::new();
    for row in &rows {
        widths.resize(row.len().max(widths.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths);
        let cells = cells.map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_broken_between_words_and_within_a_word_that_is_too_long() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("a abcdefgh b", 4), ["a", "abcd", "efgh", "b"]);
        assert_eq!(wrap("one\n\ntwo", 80), ["one", "", "two"]);
        assert_eq!(wrap("", 80), [""]);
    }

    #[test]
    fn a_line_is_broken_by_the_columns_that_its_characters_take() {
        assert_eq!(break_line("abcdef", 4), ["abcd", "ef"]);
        assert_eq!(
            break_line("\u{3000}\u{3000}\u{3000}? no", 4),
            ["\u{3000}\u{3000}", "\u{3000}? ", "no"]
        );
        assert_eq!(break_line("", 4), [""]);
    }

    #[test]
    fn white_space_is_one_space_and_what_is_hidden_is_escaped() {
        assert_eq!(one_line(" a\r\n\tb \u{1b}[2J\u{202e}"), r"a b \u{1b}[2J\u{202e}");
    }

    #[test]
    fn a_text_that_does_not_fit_ends_in_an_ellipsis() {
        assert_eq!(fit("abcdef", 6), "abcdef");
        assert_eq!(fit("abcdef", 4), "abc…");
        assert_eq!(fit("abcdef", 0), "");
        assert_eq!(fit("漢字漢字", 8), "漢字漢字");
        assert_eq!(fit("漢字漢字", 7), "漢字漢…");
        assert_eq!(fit("漢字漢字", 6), "漢字…");
        assert_eq!(fit("e\u{301}e\u{301}e\u{301}", 3), "e\u{301}e\u{301}e\u{301}");
        assert_eq!(cut(&"x".repeat(121)), format!("{}…", "x".repeat(120)));
    }

    #[test]
    fn a_cell_of_a_table_stays_on_its_line() {
        let rows = [["a\n\u{1b}[2J".to_owned(), "b".to_owned()]];
        assert_eq!(table(&rows), "a\\n\\u{1b}[2J  b\n");
    }

    #[test]
    fn columns_of_a_table_are_aligned_and_lines_have_no_trailing_space() {
        let rows = [["TASK", "AGE"], ["a", ""]].map(|row| row.map(str::to_owned));
        assert_eq!(table(&rows), "TASK  AGE\na\n");
    }

    #[test]
    fn ages_are_in_the_largest_unit_that_is_at_least_two() {
        for (seconds, expected) in [(-5, "0s"), (119, "119s"), (120, "2m"), (172_800, "2d")] {
            assert_eq!(age(TimeDelta::seconds(seconds)), expected);
        }
    }
}
