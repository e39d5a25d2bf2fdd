//! Edits one file.

use std::borrow::Cow;
use std::io::Read;
use std::sync::Arc;

use antiphon_core::{TaskId, ToolResult};

use super::Edit;
use super::changed_text::{diff, parts};
use super::document::{Document, Form};
use super::matching::{Change, changes, line_of};
use crate::read_tracker::{FileVersion, ReadTracker};
use crate::workspace::{DisplayPath, Identity, OpenedPath, ReplacedFile, Workspace, WriteTarget};
use crate::write::FILE_BYTES_MAX;
use antiphon_toolbox::{Stop, Stopped};

/// Lines named in the result.
const LINES_NAMED_MAX: usize = 10;

pub(super) struct FileEdit {
    pub(super) workspace: Arc<Workspace>,
    pub(super) reads: Arc<ReadTracker>,
    pub(super) task_id: TaskId,
}

impl FileEdit {
    pub(super) fn edit(
        &self,
        path: &str,
        edits: &[Edit],
        stop: &Stop,
    ) -> Result<ToolResult, Stopped> {
        stop.check()?;
        let place = match self.workspace.place(path) {
            Ok(place) => place,
            Err(error) => return Ok(ToolResult::failed(error.to_string())),
        };
        let name = DisplayPath(self.workspace.name_of(place.path())).to_string();
        let failed =
            |reason: &str| Ok(ToolResult::failed(format!("{name} was not changed: {reason}")));
        let Some(found) = place.existing() else {
            return failed("it does not exist. Look for it by name, or use write to make it.");
        };
        let (identity, contents) = match read(found) {
            Ok(read) => read,
            Err(reason) => return failed(&reason),
        };
        let document = match Document::parse(&contents) {
            Ok(document) => document,
            Err(what) => return failed(&format!("it is no text but {what}.")),
        };
        let changes = match changes(&document, edits) {
            Ok(changes) => changes,
            Err(reason) => return failed(&reason),
        };
        stop.check()?;
        let parts = document.write(parts(document.body(), &changes));
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        if bytes > FILE_BYTES_MAX {
            return failed(&format!("it would have {bytes} bytes, {FILE_BYTES_MAX} at most."));
        }
        let parts: Vec<&[u8]> = parts.iter().map(Cow::as_ref).collect();
        match place.replace(&parts, Some(identity)) {
            Ok(replaced) => {
                self.record_version(&place, identity, &contents, &replaced);
                Ok(ToolResult::text(report(&name, &document, &changes, &replaced)))
            }
            Err(error) => failed(&error.to_string()),
        }
    }

    /// Records the new version for a task that had read the version before.
    fn record_version(
        &self,
        place: &WriteTarget<'_>,
        before: Identity,
        contents: &[u8],
        now: &ReplacedFile,
    ) {
        let Some(version) = self.reads.last(&self.task_id, place.path()) else {
            return;
        };
        let was_seen = match version.fingerprint {
            Some(fingerprint) => fingerprint == self.reads.fingerprint_of(contents),
            None => version.identity == before,
        };
        if was_seen {
            let version = FileVersion { identity: now.identity, fingerprint: None };
            self.reads.note(&self.task_id, place.path(), version);
        }
    }
}

fn read(found: &OpenedPath) -> Result<(Identity, Vec<u8>), String> {
    let unreadable = |error| format!("it cannot be read: {error}.");
    let too_large =
        || format!("it has more than {FILE_BYTES_MAX} bytes: use a program made for large files.");
    if found.size() > FILE_BYTES_MAX as u64 {
        return Err(too_large());
    }
    let file = found.open().map_err(unreadable)?;
    let identity = Identity::of_file(&file).map_err(unreadable)?;
    let mut contents = Vec::with_capacity(usize::try_from(found.size()).unwrap_or_default() + 1);
    file.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut contents).map_err(unreadable)?;
    if contents.len() > FILE_BYTES_MAX { Err(too_large()) } else { Ok((identity, contents)) }
}

fn report(name: &str, document: &Document<'_>, changes: &[Change], now: &ReplacedFile) -> String {
    let body = document.body();
    let named = changes.iter().take(LINES_NAMED_MAX);
    let lines: Vec<String> =
        named.map(|change| line_of(body, change.range.start).to_string()).collect();
    let mut report = match changes.len() {
        1 => format!("Edited {name}: 1 replacement at line {}", lines[0]),
        count => format!("Edited {name}: {count} replacements at lines {}", lines.join(", ")),
    };
    report.push_str(if changes.len() > LINES_NAMED_MAX { ", ….\n" } else { ".\n" });
    if changes.iter().any(|change| change.is_tolerant) {
        report.push_str(
            "[`old` differed from the file in white space, quotes or dashes: check the diff]\n",
        );
    }
    match document.form() {
        Form::Utf8 => {}
        Form::Utf16(_) => report.push_str("[the file is still UTF-16]\n"),
        Form::Unknown => report.push_str("[the file is not UTF-8: other bytes are untouched]\n"),
    }
    if now.other_links > 0 {
        report.push_str("[the old file had other hard links: they keep the old content]\n");
    }
    report.push_str(&diff(body, changes).to_string());
    report
}
