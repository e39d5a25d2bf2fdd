//! Matches in one file.

use std::fmt::Write as _;
use std::io;

use grep_matcher::Matcher as _;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkMatch};

use super::Mode;
use crate::search::{LINE_CHARS_MAX, OUTPUT_BYTES_MAX, cut_around};

/// Most lines of one match that are shown; only a `multiline` one can have more than one.
pub(crate) const MATCH_LINES_MAX: usize = 50;

/// The matches of a file.
#[derive(Debug, Default)]
pub(crate) struct Hits {
    /// The lines, numbered, each with its end.
    pub(crate) text: String,
    /// Where in the text the matches are.
    pub(crate) marks: Vec<Mark>,
    /// Number of matches; one if the mode does not count.
    pub(crate) matches: u64,
}

/// Where in a text a match is.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mark {
    /// Where what is shown before it begins.
    pub(crate) start: usize,
    /// Where it begins itself.
    pub(crate) line: usize,
}

impl Hits {
    /// How much of the limit they take: each match that is shown, or the file.
    pub(crate) fn count(&self) -> usize {
        self.marks.len().max(1)
    }
}

/// Collects what a search of one file finds.
#[derive(Debug)]
pub(crate) struct Collector<'a> {
    pub(crate) hits: Hits,
    /// The file is binary, or binary from here on.
    pub(crate) is_binary: bool,
    matcher: &'a RegexMatcher,
    mode: Mode,
    /// Matches after which no more are needed.
    enough: usize,
    /// Where what belongs to the next match begins.
    next: Option<usize>,
}

impl<'a> Collector<'a> {
    pub(crate) fn new(matcher: &'a RegexMatcher, mode: Mode, enough: usize) -> Self {
        let hits = Hits::default();
        Self { hits, is_binary: false, matcher, mode, enough, next: None }
    }

    fn line(&mut self, number: u64, mark: char, line: &[u8], at: usize) {
        // Writing to a string does not fail.
        let _ = writeln!(self.hits.text, "{number}{mark} {}", cut_around(line, at));
    }

    fn show(&mut self, found: &SinkMatch<'_>) {
        let line = self.hits.text.len();
        self.hits.marks.push(Mark { start: self.next.take().unwrap_or(line), line });
        // Where the match is matters only for lines that are cut.
        let is_long = found.bytes().len() > LINE_CHARS_MAX;
        let place = if is_long { self.matcher.find(found.bytes()) } else { Ok(None) };
        let at = place.ok().flatten().map_or(0, |place| place.start());
        let first = found.line_number().unwrap_or(1);
        let mut passed = 0;
        for (number, line) in (first..).zip(found.lines()) {
            if number - first >= MATCH_LINES_MAX as u64 {
                let more = found.lines().count() - MATCH_LINES_MAX;
                let _ = writeln!(self.hits.text, "{number}: … {more} more lines of this match");
                break;
            }
            let is_here = (passed..passed + line.len()).contains(&at);
            self.line(number, ':', line, if is_here { at - passed } else { 0 });
            passed += line.len();
        }
    }
}

impl Sink for Collector<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.hits.matches += 1;
        match self.mode {
            Mode::Files => Ok(false),
            Mode::Count => Ok(true),
            Mode::Lines => {
                self.show(found);
                Ok(self.hits.marks.len() < self.enough && self.hits.text.len() <= OUTPUT_BYTES_MAX)
            }
        }
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        match context.kind() {
            SinkContextKind::Before => {
                self.next.get_or_insert(self.hits.text.len());
            }
            SinkContextKind::After | SinkContextKind::Other => {}
        }
        self.line(context.line_number().unwrap_or(1), '-', context.bytes(), 0);
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.next.get_or_insert(self.hits.text.len());
        self.hits.text.push_str("--\n");
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.is_binary = true;
        Ok(false)
    }
}
