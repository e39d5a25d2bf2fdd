//! Applies changes to a text, as parts for writing and as a diff.

use super::diff::{CONTEXT_LINES, Diff, line_end_after, line_start_before};
use super::matching::Change;

/// The text with its changes, in parts.
pub(super) fn parts<'a>(body: &'a [u8], changes: &'a [Change]) -> Vec<&'a [u8]> {
    let mut parts = Vec::with_capacity(changes.len() * 2 + 1);
    let mut from = 0;
    for change in changes {
        parts.push(&body[from..change.range.start]);
        parts.push(&change.new);
        from = change.range.end;
    }
    parts.push(&body[from..]);
    parts
}

/// The changes as a diff. Compares only the lines around each change.
pub(super) fn diff(body: &[u8], changes: &[Change]) -> Diff {
    let mut diff = Diff::default();
    let (mut old_line, mut new_line, mut from) = (0, 0, 0);
    let mut rest = changes;
    while let Some(first) = rest.first() {
        let start = window_start(body, first);
        let mut window = WindowEnd::behind(body, first);
        let mut count = 1;
        while let Some(next) = rest.get(count) {
            if next.range.start > window.end && window_start(body, next) > window.end {
                break;
            }
            if next.range.end > window.line_end {
                window = WindowEnd::behind(body, next);
            }
            count += 1;
        }
        let (group, others) = rest.split_at(count);
        rest = others;
        let between = line_breaks(&body[from..start]);
        old_line += between;
        new_line += between;
        let old = &body[start..window.end];
        let new = inserted(body, start, window.end, group);
        let text = |bytes| String::from_utf8_lossy(bytes);
        diff.add(&text(old), &text(&new), old_line, new_line);
        old_line += line_breaks(old);
        new_line += line_breaks(&new);
        from = window.end;
    }
    diff
}

/// Where the window on a change ends, and the line that the change ends in.
struct WindowEnd {
    line_end: usize,
    end: usize,
}

impl WindowEnd {
    fn behind(body: &[u8], change: &Change) -> Self {
        let line_end = line_end_after(body, change.range.end, 1);
        Self { line_end, end: line_end_after(body, line_end, CONTEXT_LINES) }
    }
}

/// Where the window on a change begins: with a line.
fn window_start(body: &[u8], change: &Change) -> usize {
    let line = memchr::memrchr(b'\n', &body[..change.range.start]).map_or(0, |before| before + 1);
    line_start_before(body, line, CONTEXT_LINES)
}

/// A window of the text with the changes in it.
fn inserted(body: &[u8], start: usize, end: usize, changes: &[Change]) -> Vec<u8> {
    let mut new = Vec::new();
    let mut from = start;
    for change in changes {
        new.extend_from_slice(&body[from..change.range.start]);
        new.extend_from_slice(&change.new);
        from = change.range.end;
    }
    new.extend_from_slice(&body[from..end]);
    new
}

fn line_breaks(text: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', text).count()
}
