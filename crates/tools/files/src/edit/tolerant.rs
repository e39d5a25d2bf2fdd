//! Finds text that differs only in white space, quotes or dashes.
//!
//! Two lines count as the same when they differ only in white space at either end, in the kind of
//! quotes, dashes or spaces. Of the lines that are replaced, those that the new text repeats stay
//! as they are in the file; the others are indented as the file is.

use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::indent::Indents;

/// Result of a tolerant search.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TolerantMatch {
    None,
    /// One match, with its replacement.
    One(Range<usize>, String),
    /// Several matches, by their start.
    Many(Vec<usize>),
}

/// Places that are looked for: one, or more than one.
const PLACES_MAX: usize = 20;

/// Searches for `old` in `text`. `eol` returns the line break at a position.
pub(super) fn find(
    text: &str,
    old: &str,
    new: &str,
    eol: impl Fn(usize) -> &'static str,
) -> TolerantMatch {
    if old.trim().is_empty() {
        return TolerantMatch::None;
    }
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let wanted: Vec<&str> = old.lines().collect();
    let mut starts = Vec::new();
    let mut start = 0;
    for (i, line) in lines.iter().enumerate() {
        let window = lines[i..].iter().take(wanted.len());
        if window.len() == wanted.len() && window.zip(&wanted).all(|(one, other)| same(one, other))
        {
            starts.push((i, start));
        }
        if starts.len() == PLACES_MAX {
            break;
        }
        start += line.len();
    }
    match starts[..] {
        [] if wanted.len() == 1 && !old.ends_with('\n') => within_lines(text, old, new),
        [] => TolerantMatch::None,
        [(i, start)] => {
            let place = MatchedLines { lines: &lines[i..i + wanted.len()], start, eol: eol(start) };
            place.rebuilt(old, &wanted, new)
        }
        _ => TolerantMatch::Many(starts.into_iter().map(|(_, start)| start).collect()),
    }
}

/// Lines of the file that match `old`.
struct MatchedLines<'a> {
    lines: &'a [&'a str],
    start: usize,
    eol: &'static str,
}

impl MatchedLines<'_> {
    fn rebuilt(&self, old: &str, wanted: &[&str], new: &str) -> TolerantMatch {
        let indents = Indents::between(wanted, self.lines);
        let begin = if indents.begins_behind_first() { indent_of(self.lines[0]).len() } else { 0 };
        let news: Vec<&str> = new.lines().collect();
        let mut text = String::new();
        for op in capture_diff_slices(Algorithm::Myers, wanted, &news) {
            if let DiffOp::Equal { old_index, len, .. } = op {
                for (i, line) in self.lines[old_index..old_index + len].iter().enumerate() {
                    let from = if old_index + i == 0 { begin } else { 0 };
                    text.push_str(&line[from..]);
                    if !line.ends_with('\n') {
                        text.push_str(self.eol);
                    }
                }
                continue;
            }
            for i in op.new_range() {
                let line = news[i];
                let is_first = i == 0 && begin > 0;
                text.push_str(&if is_first { line.to_owned() } else { indents.applied_to(line) });
                text.push_str(self.eol);
            }
        }
        if !new.ends_with('\n') {
            text.truncate(without_line_break(&text).len());
        }
        let bytes: usize = self.lines.iter().map(|line| line.len()).sum();
        let last = self.lines.last().copied().unwrap_or_default();
        let left =
            if old.ends_with('\n') { 0 } else { last.len() - without_line_break(last).len() };
        TolerantMatch::One(self.start + begin..self.start + bytes - left, text)
    }
}

/// Looks for a part of a line.
fn within_lines(text: &str, old: &str, new: &str) -> TolerantMatch {
    let whole: String = old.chars().map(plain).collect();
    match within(text, &whole) {
        found if found.is_empty() => {}
        found => return one_of(found, new),
    }
    // White space at the ends may differ: what `new` has of the same is left away too.
    let trimmed = whole.trim();
    let lead = &old[..old.len() - old.trim_start().len()];
    let trail = &old[old.trim_end().len()..];
    let new = new.strip_prefix(lead).unwrap_or(new);
    let new = new.strip_suffix(trail).unwrap_or(new);
    one_of(within(text, trimmed), new)
}

fn one_of(found: Vec<Range<usize>>, new: &str) -> TolerantMatch {
    match &found[..] {
        [] => TolerantMatch::None,
        [one] => TolerantMatch::One(one.clone(), new.to_owned()),
        [..] => TolerantMatch::Many(found.into_iter().map(|range| range.start).collect()),
    }
}

/// Where lines contain `wanted` once they are made plain.
fn within(text: &str, wanted: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = 0;
    let (mut line_plain, mut offsets) = (String::new(), Vec::new());
    for line in text.split_inclusive('\n') {
        line_plain.clear();
        offsets.clear();
        for (at, c) in line.char_indices() {
            let c = plain(c);
            line_plain.push(c);
            // One for each byte of the plain line, so that a place there is a place here.
            offsets.extend(std::iter::repeat_n(at, c.len_utf8()));
        }
        offsets.push(line.len());
        for (at, hit) in line_plain.match_indices(wanted) {
            found.push(start + offsets[at]..start + offsets[at + hit.len()]);
        }
        if found.len() >= PLACES_MAX {
            break;
        }
        start += line.len();
    }
    found
}

fn same(one: &str, other: &str) -> bool {
    one.trim().chars().map(plain).eq(other.trim().chars().map(plain))
}

/// The plain character that looks like this one.
fn plain(c: char) -> char {
    match c {
        '\u{2018}'..='\u{201b}' | '\u{2032}' | '\u{00b4}' => '\'',
        '\u{201c}'..='\u{201f}' | '\u{2033}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{00a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        c => c,
    }
}

pub(super) fn indent_of(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

fn without_line_break(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}
