//! Runs one call of `grep`.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};

use antiphon_core::{ToolError, ToolResult};
use grep_matcher::LineTerminator;
use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use ignore::types::{FileTypeDef, Types, TypesBuilder};

use super::hits::Collector;
use super::matches::Matches;
use super::pattern::{self, PatternOptions};
use super::report::Report;
use super::{Arguments, GREP_CONTEXT_MAX, GREP_LIMIT, GREP_LIMIT_MAX, Mode, NAME, OneOrMore};
use crate::search::{
    Deadline, Folder, Globs, Notes, SearchStart, StartKind, Visitor, Walk, as_path, within,
};
use crate::workspace::Workspace;
use antiphon_toolbox::{StopFlag, Stopped};

/// Longest line that is searched, and longest file if matches may go over several lines: all of it
/// is in memory then. Others are left out, and the result says so.
pub(crate) const HELD_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Runs a call.
pub(crate) fn run(
    workspace: &Workspace,
    arguments: Arguments,
    stop: &StopFlag,
) -> Result<Result<ToolResult, ToolError>, Stopped> {
    let search = match Search::new(workspace, arguments, stop) {
        Ok(search) => search,
        Err(SearchError::Arguments(error)) => return Ok(Err(error)),
        Err(SearchError::Path(reason)) => return Ok(Ok(ToolResult::failed(reason))),
    };
    let report = search.run();
    stop.check()?;
    Ok(Ok(ToolResult::text(report.text())))
}

enum SearchError {
    Arguments(ToolError),
    Path(String),
}

/// State shared by the threads of a search.
struct Search<'a> {
    place: SearchStart,
    deadline: Deadline<'a>,
    matcher: RegexMatcher,
    globs: Globs,
    types: Types,
    mode: Mode,
    multiline: bool,
    hidden: bool,
    context: usize,
    limit: usize,
    found: Matches,
    notes: Notes,
    files: AtomicU64,
    binary: AtomicU64,
}

impl<'a> Search<'a> {
    fn new(
        workspace: &Workspace,
        given: Arguments,
        stop: &'a StopFlag,
    ) -> Result<Self, SearchError> {
        let limit = within(NAME, "limit", given.limit, GREP_LIMIT, 1..=GREP_LIMIT_MAX)?;
        let context = within(NAME, "context", given.context, 0, 0..=GREP_CONTEXT_MAX)?;
        let options =
            PatternOptions { literal: given.literal, case: given.case, multiline: given.multiline };
        let matcher = pattern::compile(&given.pattern, options)
            .map_err(|reason| invalid("pattern", &reason))?;
        let globs = Globs::parse(&given.glob.map(OneOrMore::into_list).unwrap_or_default())
            .map_err(|reason| invalid("glob", &reason))?;
        let types = types(given.file_type.as_deref())?;
        let place =
            SearchStart::find(workspace, given.path.as_deref()).map_err(SearchError::Path)?;
        Ok(Self {
            place,
            deadline: Deadline::new(stop),
            matcher,
            globs,
            types,
            mode: given.mode,
            multiline: given.multiline,
            hidden: given.hidden,
            context,
            limit,
            found: Matches::new(limit),
            notes: Notes::default(),
            files: AtomicU64::new(0),
            binary: AtomicU64::new(0),
        })
    }

    fn run(self) -> Report {
        let mut remarks = match &self.place.what {
            StartKind::File(file) => {
                self.file_searcher().search(file, b"");
                Vec::new()
            }
            StartKind::Folder(folder) => {
                let walk = Walk::new(folder, &self.place, self.hidden, &self.deadline);
                walk.run(|| self.file_searcher());
                walk.remarks()
            }
        };
        remarks.extend(self.deadline.remarks());
        let (files, has_more) = self.found.into_files();
        Report {
            place: self.place,
            mode: self.mode,
            limit: self.limit,
            files,
            has_more,
            notes: self.notes,
            searched: self.files.into_inner(),
            binary: self.binary.into_inner(),
            remarks,
        }
    }

    fn file_searcher(&self) -> FileSearcher<'_> {
        let mut builder = SearcherBuilder::new();
        builder
            .line_terminator(LineTerminator::crlf())
            .line_number(self.mode == Mode::Lines)
            .binary_detection(BinaryDetection::quit(0))
            .multi_line(self.multiline)
            .heap_limit(Some(HELD_BYTES_MAX));
        if self.mode == Mode::Lines {
            builder.before_context(self.context).after_context(self.context);
        }
        FileSearcher { call: self, matcher: self.matcher.clone(), searcher: builder.build() }
    }
}

/// State of one thread.
struct FileSearcher<'a> {
    call: &'a Search<'a>,
    /// One per thread, so that threads do not contend for its memory.
    matcher: RegexMatcher,
    searcher: Searcher,
}

impl FileSearcher<'_> {
    fn search(&mut self, file: &File, path: &[u8]) {
        let call = self.call;
        let mut reader = StoppableReader { file, deadline: &call.deadline, failed: None };
        let mut collector = Collector::new(&self.matcher, call.mode, call.limit + 1);
        let ended = self.searcher.search_reader(&self.matcher, &mut reader, &mut collector);
        call.files.fetch_add(1, Ordering::Relaxed);
        match (ended, reader.failed) {
            (Ok(()), _) => {}
            (Err(_), Some(error)) => call.notes.add_error(path, &error),
            (Err(_), None) if call.deadline.is_over() => {}
            (Err(_), None) => {
                let what = if call.multiline { "" } else { "a line " };
                let mib = HELD_BYTES_MAX / 1024 / 1024;
                call.notes.add(path, format!("{what}longer than {mib} MiB"));
            }
        }
        if collector.is_binary {
            call.binary.fetch_add(1, Ordering::Relaxed);
        }
        if collector.hits.matches > 0 {
            call.found.add(path, collector.hits);
        }
    }
}

impl Visitor for FileSearcher<'_> {
    fn enters(&mut self, folder: &[u8]) -> bool {
        self.call.globs.enter(folder) && !self.call.found.is_past(folder)
    }

    fn wants(&mut self, path: &[u8]) -> bool {
        let types = &self.call.types;
        let is_other_type = || !types.is_empty() && types.matched(as_path(path), false).is_ignore();
        self.call.globs.keep(path) && !is_other_type()
    }

    fn visit(&mut self, folder: &Folder, name: &CStr, path: &[u8]) {
        let call = self.call;
        if call.found.is_past(path) {
            return;
        }
        match folder.file(name) {
            Ok(Some(file)) => self.search(&file, path),
            Ok(None) => {}
            Err(error) => call.notes.add_error(path, &error),
        }
    }

    fn fails(&mut self, folder: &[u8], error: &io::Error) {
        self.call.notes.add_error(folder, error);
    }
}

/// A reader that reports the end of the file when the search has to stop.
struct StoppableReader<'a> {
    file: &'a File,
    deadline: &'a Deadline<'a>,
    failed: Option<io::Error>,
}

impl Read for StoppableReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.deadline.is_over() {
            return Err(io::Error::other("over"));
        }
        self.file.read(buffer).inspect_err(|error| {
            if error.kind() != io::ErrorKind::Interrupted {
                self.failed = Some(error.kind().into());
            }
        })
    }
}

fn types(name: Option<&str>) -> Result<Types, SearchError> {
    let Some(name) = name else {
        return Ok(Types::empty());
    };
    let mut builder = TypesBuilder::new();
    builder.add_defaults().select(name);
    builder.build().map_err(|_| {
        let known = builder.definitions();
        let known = known.iter().map(FileTypeDef::name);
        let close = similar::get_close_matches(name, &known.collect::<Vec<_>>(), 5, 0.5);
        let close = match &*close {
            [] => String::new(),
            close => format!(" like {}", close.join(", ")),
        };
        let name: String = name.chars().take(40).flat_map(char::escape_debug).collect();
        invalid("type", &format!("`{name}` is not known: use another{close}, or `glob`"))
    })
}

fn invalid(name: &str, reason: &str) -> SearchError {
    SearchError::Arguments(ToolError::InvalidArguments {
        tool: NAME.to_owned(),
        reason: format!("`{name}`: {reason}"),
    })
}

impl From<ToolError> for SearchError {
    fn from(error: ToolError) -> Self {
        Self::Arguments(error)
    }
}
