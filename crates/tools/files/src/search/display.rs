//! Formats names and lines for display: one line of text, without control or hidden characters.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Longest line that is shown whole.
pub(crate) const LINE_CHARS_MAX: usize = 500;

/// How much of a longer line is shown before the match.
const LEAD_CHARS: usize = 100;

/// A path for display.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ShownPath {
    pub(crate) text: String,
    /// Characters of it are shown as escapes.
    pub(crate) is_escaped: bool,
    /// Bytes of it that are not text are shown as `�`.
    pub(crate) is_lossy: bool,
}

pub(crate) fn shown_path(path: &[u8]) -> ShownPath {
    let whole = String::from_utf8_lossy(path);
    let is_lossy = matches!(whole, Cow::Owned(_));
    let shown = escaped(&whole, |character| character == '\t' || is_hidden(character));
    let is_escaped = matches!(shown, Cow::Owned(_));
    let text = if path.is_empty() { ".".to_owned() } else { shown.into_owned() };
    ShownPath { text, is_escaped, is_lossy }
}

/// A line without its end; of a long one, what is around byte `at`.
pub(crate) fn cut_around(line: &[u8], at: usize) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= LINE_CHARS_MAX {
        return escaped(&String::from_utf8_lossy(line), is_hidden).into_owned();
    }
    // A character has at most four bytes.
    let at = boundary(line, at.min(line.len()));
    let from = boundary(line, at.saturating_sub(4 * LINE_CHARS_MAX));
    let to = boundary(line, line.len().min(at + 4 * LINE_CHARS_MAX));
    let before = String::from_utf8_lossy(&line[from..at]);
    let after = String::from_utf8_lossy(&line[at..to]);

    let budget = LINE_CHARS_MAX - LEAD_CHARS;
    let lead = LINE_CHARS_MAX - after.chars().take(budget).count();
    let skipped = before.chars().count().saturating_sub(lead);
    let mut visible_part: String = before.chars().skip(skipped).collect();
    let left = LINE_CHARS_MAX - visible_part.chars().count();
    visible_part.extend(after.chars().take(left));

    let mut shown = String::new();
    if from > 0 || skipped > 0 {
        shown.push('…');
    }
    shown.push_str(&escaped(&visible_part, is_hidden));
    if to < line.len() || after.chars().nth(left).is_some() {
        shown.push('…');
    }
    shown
}

/// A number with thousands separators: `1,532`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// The nearest place at or before `at` that is not within a character.
fn boundary(line: &[u8], at: usize) -> usize {
    let is_within = |at: &usize| line.get(*at).is_some_and(|byte| byte & 0xc0 == 0x80);
    (at.saturating_sub(3)..=at).rev().find(|at| !is_within(at)).unwrap_or(at)
}

fn escaped(text: &str, needs_it: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&needs_it) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if needs_it(character) {
            // Writing to a string does not fail.
            let _ = write!(shown, "{}", character.escape_default());
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

/// Control characters, and what turns or hides text: marks of direction, separators of lines,
/// tags.
fn is_hidden(character: char) -> bool {
    match character {
        '\t' => false,
        '\u{61c}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}'
        | '\u{e0000}'..='\u{e007f}' => true,
        other => other.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_shown_without_its_end_and_with_its_tabs() {
        assert_eq!(cut_around(b"\tlet x = 1;\r\n", 0), "\tlet x = 1;");
        assert_eq!(cut_around(b"a\x1b[31mred\r", 0), "a\\u{1b}[31mred");
        assert_eq!(
            cut_around("caf\u{e9} \u{e0041}\u{202e}".as_bytes(), 0),
            "café \\u{e0041}\\u{202e}"
        );
        assert_eq!(cut_around(b"\xff\xfe!", 0), "��!");
    }

    #[test]
    fn a_long_line_is_cut_around_the_match() {
        let line = format!("{}needle{}", "é".repeat(1000), "ü".repeat(1000));
        let shown = cut_around(line.as_bytes(), 2000);
        assert_eq!(shown, format!("…{}needle{}…", "é".repeat(100), "ü".repeat(394)));
        let shown = cut_around(line.as_bytes(), 0);
        assert_eq!(shown, format!("{}…", "é".repeat(500)));
        let shown = cut_around(line.as_bytes(), line.len());
        assert_eq!(shown, format!("…{}", "ü".repeat(500)));
        let within_a_character = cut_around(line.as_bytes(), 1);
        assert_eq!(within_a_character, format!("{}…", "é".repeat(500)));
    }

    #[test]
    fn a_line_of_broken_bytes_is_cut_too() {
        for at in [0, 1, 500, 4999, 5000, 9000] {
            let shown = cut_around(&[0x80; 5000], at);
            assert!(shown.chars().count() <= LINE_CHARS_MAX + 2, "{at}");
        }
    }

    #[test]
    fn a_path_is_one_line_of_text() {
        let plain = ShownPath { text: "src/é.rs".into(), is_escaped: false, is_lossy: false };
        assert_eq!(shown_path("src/é.rs".as_bytes()), plain);
        assert_eq!(shown_path(b"").text, ".");
        let odd = shown_path(b"a\nb\x1b[2J\t\xff");
        assert_eq!(odd.text, "a\\nb\\u{1b}[2J\\t\u{fffd}");
        assert!(odd.is_escaped && odd.is_lossy);
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
