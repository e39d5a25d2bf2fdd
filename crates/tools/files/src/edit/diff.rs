//! Unified diffs of bounded length.

use std::fmt::{self, Write};
use std::time::Duration;

use memchr::{memchr_iter, memrchr_iter};
use similar::{ChangeTag, TextDiff};

/// Longest diff, in bytes. The rest is counted, not shown.
const DIFF_BYTES_MAX: usize = 12 * 1024;

/// Most lines that are compared. For larger changes only the size is reported.
const COMPARED_LINES_MAX: usize = 20_000;

/// Time limit of the exact comparison; then a coarser diff is used.
const COMPARING_MAX: Duration = Duration::from_millis(250);

/// Longest line shown whole, in characters.
const LINE_CHARS_MAX: usize = 500;

/// Lines shown around a change.
pub(super) const CONTEXT_LINES: usize = 3;

/// A diff between two versions of a text.
#[derive(Debug, Default)]
pub(crate) struct Diff {
    text: String,
    /// Windows and hunks that are not shown whole.
    left_out: usize,
}

impl Diff {
    /// Compares two texts.
    pub(crate) fn of(old: &str, new: &str) -> Self {
        let start = line_start_before(old.as_bytes(), common_prefix(old, new), CONTEXT_LINES);
        let (old_rest, new_rest) = (&old[start..], &new[start..]);
        let end = common_suffix(old_rest, new_rest);
        let kept = line_end_after(old_rest.as_bytes(), old_rest.len() - end, CONTEXT_LINES);
        let end = old_rest.len() - kept;
        let line = old[..start].matches('\n').count();
        let mut diff = Self::default();
        diff.add(&old_rest[..kept], &new_rest[..new_rest.len() - end], line, line);
        diff
    }

    /// Adds two windows of the texts, which begin behind so many lines.
    pub(super) fn add(&mut self, old: &str, new: &str, old_line: usize, new_line: usize) {
        let count = |text: &str| text.matches('\n').count();
        if self.text.len() >= DIFF_BYTES_MAX || count(old) + count(new) > COMPARED_LINES_MAX {
            self.left_out += 1;
            return;
        }
        let diff = TextDiff::configure().timeout(COMPARING_MAX).diff_lines(old, new);
        for group in diff.grouped_ops(CONTEXT_LINES) {
            let (Some(first), Some(last)) = (group.first(), group.last()) else {
                continue;
            };
            if self.text.len() >= DIFF_BYTES_MAX {
                self.left_out += 1;
                continue;
            }
            let olds = old_line + first.old_range().start..old_line + last.old_range().end;
            let news = new_line + first.new_range().start..new_line + last.new_range().end;
            self.say(format_args!("@@ -{} +{} @@", Lines(&olds), Lines(&news)));
            for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
                if self.text.len() >= DIFF_BYTES_MAX {
                    self.left_out += 1;
                    break;
                }
                self.line(change.tag(), change.value());
            }
        }
    }

    fn line(&mut self, tag: ChangeTag, line: &str) {
        let sign = match tag {
            ChangeTag::Equal => ' ',
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
        };
        let plain = line.trim_end_matches(['\r', '\n']);
        match plain.char_indices().nth(LINE_CHARS_MAX) {
            None => self.say(format_args!("{sign}{plain}")),
            Some((at, _)) => self.say(format_args!("{sign}{}…", &plain[..at])),
        }
        if !line.ends_with('\n') {
            self.say(format_args!("\\ No newline at end of file"));
        }
    }

    fn say(&mut self, line: fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{line}");
    }
}

impl fmt::Display for Diff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        match self.left_out {
            0 => Ok(()),
            _ if self.text.is_empty() => writeln!(f, "[the change is too large for a diff]"),
            _ => writeln!(f, "[the diff is cut here: more was changed]"),
        }
    }
}

/// Lines as a hunk names them: its first, from 1, and how many.
struct Lines<'a>(&'a std::ops::Range<usize>);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.len() {
            // An empty range is named by the line before it.
            0 => write!(f, "{},0", self.0.start),
            1 => write!(f, "{}", self.0.start + 1),
            count => write!(f, "{},{count}", self.0.start + 1),
        }
    }
}

/// Bytes that both begin with.
fn common_prefix(one: &str, other: &str) -> usize {
    let equal = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    // A window begins with a line, and so within no character.
    one.as_bytes()[..equal].iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1)
}

/// Bytes that both end with, from the beginning of a line.
fn common_suffix(one: &str, other: &str) -> usize {
    let equal = one.bytes().rev().zip(other.bytes().rev()).take_while(|(a, b)| a == b).count();
    let suffix = &one.as_bytes()[one.len() - equal..];
    suffix.iter().position(|b| *b == b'\n').map_or(0, |at| suffix.len() - at - 1)
}

/// The beginning of the line that is `lines` before the one that begins at `at`.
pub(super) fn line_start_before(text: &[u8], at: usize, lines: usize) -> usize {
    memrchr_iter(b'\n', &text[..at]).map(|at| at + 1).nth(lines).unwrap_or(0)
}

/// The end of the line that is `lines` after the one that ends at `at`.
pub(super) fn line_end_after(text: &[u8], at: usize, lines: usize) -> usize {
    let Some(more) = lines.checked_sub(1) else {
        return at;
    };
    memchr_iter(b'\n', &text[at..]).map(|end| at + end + 1).nth(more).unwrap_or(text.len())
}
