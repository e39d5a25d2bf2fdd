//! Formats the result of a search for the model.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::hits::Hits;
use super::{GREP_LIMIT_MAX, Mode};
use crate::search::{Names, Notes, OUTPUT_BYTES_MAX, RelPath, SearchStart, grouped};

/// Result of a search.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) place: SearchStart,
    pub(crate) mode: Mode,
    pub(crate) limit: usize,
    /// The first files by path, up to the one that has what is too much.
    pub(crate) files: BTreeMap<RelPath, Hits>,
    pub(crate) has_more: bool,
    pub(crate) notes: Notes,
    pub(crate) searched: u64,
    pub(crate) binary: u64,
    /// Further remarks, one per line.
    pub(crate) remarks: Vec<String>,
}

/// Text and counts shown so far.
#[derive(Debug, Default)]
struct ShownMatches {
    text: String,
    files: u64,
    /// Number of matches or files that count toward the limit.
    count: usize,
    matches: u64,
    is_cut: bool,
}

impl Report {
    pub(crate) fn text(&self) -> String {
        let mut names = Names::new(&self.place);
        let mut text =
            if self.files.is_empty() { self.nothing(&mut names) } else { self.found(&mut names) };
        let last = self.files.last_key_value().filter(|_| self.has_more).map(|(path, _)| path);
        let mut notes: Vec<String> = self.notes.remarks(&self.place, last).into_iter().collect();
        notes.extend(names.remarks());
        notes.extend_from_slice(&self.remarks);
        for note in notes {
            text.push('\n');
            text.push_str(&note);
        }
        text
    }

    fn nothing(&self, names: &mut Names<'_>) -> String {
        let place = names.show(b"");
        let binary = match self.binary {
            0 => String::new(),
            1 => ", 1 of them binary".to_owned(),
            more => format!(", {} of them binary", grouped(more)),
        };
        match self.searched {
            0 => format!(
                "No files to search in `{place}`. Ignored and hidden files are left out: name an \
                 ignored folder itself as `path`, or pass `hidden: true`."
            ),
            files => {
                format!("No matches in `{place}` ({} searched{binary}).", counted(files, "file"))
            }
        }
    }

    fn found(&self, names: &mut Names<'_>) -> String {
        let mut shown = ShownMatches::default();
        for (path, hits) in &self.files {
            if shown.count >= self.limit || shown.is_cut {
                break;
            }
            let name = names.show(&path.0);
            match self.mode {
                Mode::Lines => self.lines(&mut shown, &name, hits),
                Mode::Files => line(&mut shown, &name, hits),
                Mode::Count => {
                    line(&mut shown, &format!("{name}: {}", grouped(hits.matches)), hits);
                }
            }
        }
        let total = self.total(&shown);
        // Writing to a string does not fail.
        let _ = write!(shown.text, "\n[{total}]");
        shown.text
    }

    /// As many lines of a file as may be shown.
    fn lines(&self, shown: &mut ShownMatches, name: &str, hits: &Hits) {
        let budget = OUTPUT_BYTES_MAX.saturating_sub(shown.text.len() + name.len() + 2);
        let allowed = hits.marks.get(self.limit - shown.count).map(|mark| mark.start);
        let mut part = &hits.text[..allowed.unwrap_or(hits.text.len())];
        let mut begin = 0;
        if part.len() > budget {
            shown.is_cut = true;
            // A match that does not fit with its context is shown without the context.
            if shown.files == 0 && hits.marks.first().is_some_and(|mark| mark.line >= budget / 2) {
                begin = hits.marks[0].line;
                part = &part[begin..];
            }
            let fits = &part[..part.floor_char_boundary(budget)];
            part = &fits[..fits.rfind('\n').map_or(0, |at| at + 1)];
        }
        let end = begin + part.len();
        let matches = hits.marks.iter().filter(|mark| mark.line < end).count();
        if matches == 0 {
            return;
        }
        if !shown.text.is_empty() {
            shown.text.push('\n');
        }
        let _ = writeln!(shown.text, "{name}");
        shown.text.push_str(part);
        shown.files += 1;
        shown.count += matches;
        shown.matches += matches as u64;
    }

    fn total(&self, shown: &ShownMatches) -> String {
        let (files, matches) = (counted(shown.files, "file"), counted(shown.matches, "match"));
        let what = match self.mode {
            Mode::Lines | Mode::Count => format!("{matches} in {files}"),
            Mode::Files => format!("{files} with a match"),
        };
        if !self.has_more && !shown.is_cut {
            return what;
        }
        let why = if shown.is_cut { ", cut because it is long" } else { "" };
        let raise = if shown.is_cut || self.limit as u64 >= GREP_LIMIT_MAX {
            String::new()
        } else {
            format!(", or raise `limit` ({} at most)", grouped(GREP_LIMIT_MAX))
        };
        format!("the first {what}{why}; there are more: narrow `pattern`, `path` or `glob`{raise}")
    }
}

/// One line for a file.
fn line(shown: &mut ShownMatches, line: &str, hits: &Hits) {
    if shown.text.len() + line.len() + 1 > OUTPUT_BYTES_MAX {
        shown.is_cut = true;
        return;
    }
    shown.text.push_str(line);
    shown.text.push('\n');
    shown.files += 1;
    shown.count += 1;
    shown.matches += hits.matches;
}

fn counted(number: u64, noun: &str) -> String {
    let plural = match (number, noun) {
        (1, _) => "",
        (_, "match") => "es",
        (_, _) => "s",
    };
    format!("{} {noun}{plural}", grouped(number))
}
