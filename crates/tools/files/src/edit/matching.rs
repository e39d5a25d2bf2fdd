//! Finds the position of each edit and its exact replacement.

use std::ops::Range;
use std::rc::Rc;

use memchr::memmem::Finder;
use memchr::{memchr, memchr_iter, memrchr};

use super::Edit;
use super::document::{Document, TextEncoding};
use super::nearest::nearest;
use super::tolerant::{self, TolerantMatch};

/// Most positions that one call changes.
pub const EDIT_MATCHES_MAX: usize = 100_000;

/// Lines named in an error.
const LINES_NAMED_MAX: usize = 10;

/// One replaced range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) range: Range<usize>,
    pub(super) new: Rc<[u8]>,
    /// Index of the edit it belongs to.
    pub(super) edit: usize,
    /// Whether the match was inexact.
    pub(super) is_tolerant: bool,
}

/// Finds the ranges of all edits, in order. The error is a text for the model.
pub(super) fn changes(document: &Document<'_>, edits: &[Edit]) -> Result<Vec<Change>, String> {
    let mut changes: Vec<Change> = Vec::new();
    for (i, edit) in edits.iter().enumerate() {
        let which = |reason: String| match edits.len() {
            1 => reason,
            count => format!("edit {} of {count}: {reason}", i + 1),
        };
        changes.extend(places(document, edit, i).map_err(which)?);
        if changes.len() > EDIT_MATCHES_MAX {
            return Err(format!(
                "there are more than {EDIT_MATCHES_MAX} places to change: use another tool for this"
            ));
        }
    }
    changes.sort_by_key(|change| (change.range.start, change.range.end));
    let overlap = changes.windows(2).find(|pair| pair[0].range.end > pair[1].range.start);
    if let Some([one, other]) = overlap {
        let line = line_of(document.body(), other.range.start);
        return Err(format!(
            "edits {} and {} overlap at line {line}: put them together into one",
            one.edit + 1,
            other.edit + 1
        ));
    }
    Ok(changes)
}

/// The number of the line that `at` is in, from 1.
pub(super) fn line_of(body: &[u8], at: usize) -> usize {
    memchr_iter(b'\n', &body[..at]).count() + 1
}

fn places(document: &Document<'_>, edit: &Edit, index: usize) -> Result<Vec<Change>, String> {
    let body = document.body();
    if document.encoding() == TextEncoding::Unknown && !(edit.old.is_ascii() && edit.new.is_ascii())
    {
        return Err("the file is not UTF-8, so only plain ASCII text can be replaced in it, by \
                    plain ASCII text: convert it first, or leave other characters out"
            .to_owned());
    }
    let found = exact(body, &edit.old);
    match found.len() {
        0 => inexact(document, edit, index),
        1 => Ok(replacements(body, edit, index, found)),
        _ if edit.all => Ok(replacements(body, edit, index, found)),
        count => Err(format!(
            "`old` is in the file {} times, at lines {}: add lines around it to make it unique, or \
             set `all` to replace every one",
            if count > EDIT_MATCHES_MAX { "too many".to_owned() } else { count.to_string() },
            lines(body, found.iter().map(|range| range.start))
        )),
    }
}

/// Every occurrence of `old`, with `\n` or `\r\n` as line break.
fn exact(body: &[u8], old: &str) -> Vec<Range<usize>> {
    let mut found = all_occurrences(body, old.as_bytes());
    if old.contains('\n') && !old.contains('\r') {
        // What begins with a line break does not begin within one.
        let is_within = |at: usize| old.starts_with('\n') && at > 0 && body[at - 1] == b'\r';
        for range in &mut found {
            range.start -= usize::from(is_within(range.start));
        }
        found.extend(all_occurrences(body, old.replace('\n', "\r\n").as_bytes()));
        found.sort_by_key(|range| (range.start, range.end));
        found.dedup();
    }
    found
}

/// Occurrences may overlap: `aa` is in `aaa` twice, so the edit is ambiguous.
fn all_occurrences(body: &[u8], old: &[u8]) -> Vec<Range<usize>> {
    let finder = Finder::new(old);
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut from = 0;
    while let Some(at) = finder.find(&body[from..]) {
        let at = from + at;
        found.push(at..at + old.len());
        from = at + 1;
        if found.len() > EDIT_MATCHES_MAX {
            break;
        }
    }
    found
}

fn replacements(body: &[u8], edit: &Edit, index: usize, found: Vec<Range<usize>>) -> Vec<Change> {
    let verbatim: Rc<[u8]> = edit.new.as_bytes().into();
    let windows: Rc<[u8]> = with_crlf(&edit.new).into_bytes().into();
    let mut end = 0;
    let mut breaks = LineBreaks::of(body);
    let mut changes = Vec::with_capacity(found.len());
    for range in found {
        // Of overlapping occurrences the first counts.
        if range.start < end {
            continue;
        }
        end = range.end;
        let is_windows = !edit.old.contains('\r') && breaks.is_crlf_at(range.start);
        let new = Rc::clone(if is_windows { &windows } else { &verbatim });
        changes.push(Change { range, new, edit: index, is_tolerant: false });
    }
    changes
}

fn inexact(document: &Document<'_>, edit: &Edit, index: usize) -> Result<Vec<Change>, String> {
    let body = document.body();
    let Some(text) = document.text() else {
        return Err(format!("`old` is not in the file.{}", nearest(body, edit)));
    };
    let eol = |at| if LineBreaks::of(body).is_crlf_at(at) { "\r\n" } else { "\n" };
    match tolerant::find(text, &edit.old, &edit.new, eol) {
        TolerantMatch::None => Err(format!("`old` is not in the file.{}", nearest(body, edit))),
        TolerantMatch::One(range, new) if text[range.clone()] == new => Err(format!(
            "`old` is at line {} but for white space, quotes or dashes, and `new` would change \
             nothing there: read the lines again",
            line_of(body, range.start)
        )),
        TolerantMatch::One(range, new) => {
            let new = new.into_bytes().into();
            Ok(vec![Change { range, new, edit: index, is_tolerant: true }])
        }
        TolerantMatch::Many(starts) => Err(format!(
            "`old` is not in the file exactly, and but for white space, quotes or dashes at \
             several lines: {}. Read them, and give the lines as they are",
            lines(body, starts.into_iter())
        )),
    }
}

/// Line breaks of a text by position. Queries in ascending order scan the text only once.
struct LineBreaks<'a> {
    body: &'a [u8],
    /// The line break that counts for the last place, and for every place up to here.
    known: Option<(Option<usize>, usize)>,
}

impl<'a> LineBreaks<'a> {
    fn of(body: &'a [u8]) -> Self {
        Self { body, known: None }
    }

    /// Whether the line at this position ends with `\r\n`; for the last line, the line before it.
    fn is_crlf_at(&mut self, at: usize) -> bool {
        let (end, up_to) = match self.known {
            Some((end, up_to)) if at <= up_to => (end, up_to),
            Some(_) | None => match memchr(b'\n', &self.body[at..]) {
                Some(end) => (Some(at + end), at + end),
                None => (memrchr(b'\n', self.body), self.body.len()),
            },
        };
        self.known = Some((end, up_to));
        end.is_some_and(|end| end > 0 && self.body[end - 1] == b'\r')
    }
}

fn with_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

fn lines(body: &[u8], starts: impl ExactSizeIterator<Item = usize>) -> String {
    let count = starts.len();
    let named: Vec<String> =
        starts.take(LINES_NAMED_MAX).map(|start| line_of(body, start).to_string()).collect();
    let more = if count > LINES_NAMED_MAX { ", …" } else { "" };
    format!("{}{more}", named.join(", "))
}
