//! Edits one file.

use std::borrow::Cow;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use antiphon_core::port::CutOffOutcome;
use antiphon_core::{TaskId, ToolResult};

use super::Edit;
use super::changed_text::{diff, parts};
use super::document::{Document, TextEncoding};
use super::matching::{Change, changes, line_of};
use crate::change_note::{self, ChangeNote, Compared, FileDigest, Seen};
use crate::read_tracker::{FileVersion, ReadTracker};
use crate::workspace::{
    DisplayPath, Identity, OpenedPath, ReplaceError, ReplacedFile, Workspace, WriteTarget,
};
use crate::write::FILE_BYTES_MAX;
use antiphon_toolbox::{StopFlag, Stopped};

/// Lines named in the result.
const LINES_NAMED_MAX: usize = 10;

pub(super) struct FileEdit {
    pub(super) workspace: Arc<Workspace>,
    pub(super) reads: Arc<ReadTracker>,
    pub(super) task_id: TaskId,
}

/// A change that can be made.
struct Plan<'a> {
    place: &'a WriteTarget<'a>,
    name: &'a str,
    identity: Identity,
    contents: &'a [u8],
    document: &'a Document<'a>,
    changes: &'a [Change],
    /// The new contents.
    parts: &'a [&'a [u8]],
}

impl FileEdit {
    /// Edits the file; with a note, only if it is still as it was when the note was made.
    pub(super) fn edit(
        &self,
        path: &str,
        edits: &[Edit],
        note: Option<&ChangeNote>,
        stop: &StopFlag,
    ) -> Result<ToolResult, Stopped> {
        let edited = self.with_plan(path, edits, stop, |plan| {
            let Plan { place, name, identity, contents, document, changes, parts } = plan;
            let now = note.map(|_| FileDigest::of_file(self.name_of(place), [*contents]));
            if let (Some(note), Some(now)) = (note, now)
                && !note.is_before(&now)
            {
                return Err(not_changed(name, &ReplaceError::Changed.to_string()));
            }
            match place.replace(parts, Some(*identity)) {
                Ok(replaced) => {
                    self.record_version(place, *identity, contents, &replaced);
                    Ok(ToolResult::text(report(name, document, changes, &replaced)))
                }
                Err(error) => Err(not_changed(name, &error.to_string())),
            }
        })?;
        Ok(edited.flatten().unwrap_or_else(ToolResult::failed))
    }

    /// What shows later whether the file was edited. `None` when nothing would be.
    pub(super) fn change_note(
        &self,
        path: &str,
        edits: &[Edit],
        stop: &StopFlag,
    ) -> Result<Option<ChangeNote>, Stopped> {
        let noted = self.with_plan(path, edits, stop, |plan| {
            let name = self.name_of(plan.place);
            let before = FileDigest::of_file(name, [plan.contents]);
            let after = FileDigest::of_file(name, plan.parts.iter().copied());
            ChangeNote::new(before, after, self.seen(plan.place, plan.identity, plan.contents))
        })?;
        Ok(noted.ok())
    }

    /// Looks whether the file was edited.
    pub(super) fn inspect_cut_off(&self, path: &str, note: &ChangeNote) -> CutOffOutcome {
        let place = match self.workspace.place(path) {
            Ok(place) => place,
            Err(error) => return change_note::unreadable(&error.to_string()),
        };
        let name = DisplayPath(self.name_of(&place)).to_string();
        let Some(found) = place.existing() else { return change_note::different(&name) };
        let (identity, contents) = match read(found) {
            Ok(read) => read,
            Err(reason) => return change_note::unreadable(&reason),
        };
        let compared =
            note.compare(&FileDigest::of_file(self.name_of(&place), [contents.as_slice()]));
        if compared != Compared::Different && note.was_seen() {
            let fingerprint = Some(self.reads.fingerprint_of(&contents));
            self.reads.note(&self.task_id, place.path(), FileVersion { identity, fingerprint });
        }
        match compared {
            Compared::AsAfter => {
                CutOffOutcome::Happened(ToolResult::text(format!("Edited {name}.")))
            }
            Compared::AsBefore => CutOffOutcome::MayRun,
            Compared::Different => change_note::different(&name),
        }
    }

    /// Works out the change and gives it to `act`, which may make it. The inner error says why there is
    /// none.
    fn with_plan<R>(
        &self,
        path: &str,
        edits: &[Edit],
        stop: &StopFlag,
        act: impl FnOnce(&Plan<'_>) -> R,
    ) -> Result<Result<R, String>, Stopped> {
        stop.check()?;
        let place = match self.workspace.place(path) {
            Ok(place) => place,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let name = DisplayPath(self.name_of(&place)).to_string();
        let failed = |reason: &str| Ok(Err(not_changed(&name, reason)));
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
        Ok(Ok(act(&Plan {
            place: &place,
            name: &name,
            identity,
            contents: &contents,
            document: &document,
            changes: &changes,
            parts: &parts,
        })))
    }

    fn name_of<'a>(&self, place: &'a WriteTarget<'_>) -> &'a Path {
        self.workspace.name_of(place.path())
    }

    /// Whether the task has read the file as it is.
    fn seen(&self, place: &WriteTarget<'_>, identity: Identity, contents: &[u8]) -> Seen {
        let Some(version) = self.reads.last(&self.task_id, place.path()) else { return Seen::No };
        let is_same = match version.fingerprint {
            Some(fingerprint) => fingerprint == self.reads.fingerprint_of(contents),
            None => version.identity == identity,
        };
        if is_same { Seen::Yes } else { Seen::No }
    }

    /// Records the new version for a task that had read the version before.
    fn record_version(
        &self,
        place: &WriteTarget<'_>,
        before: Identity,
        contents: &[u8],
        now: &ReplacedFile,
    ) {
        if self.seen(place, before, contents) == Seen::Yes {
            let version = FileVersion { identity: now.identity, fingerprint: None };
            self.reads.note(&self.task_id, place.path(), version);
        }
    }
}

fn not_changed(name: &str, reason: &str) -> String {
    format!("{name} was not changed: {reason}")
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
    match document.encoding() {
        TextEncoding::Utf8 => {}
        TextEncoding::Utf16(_) => report.push_str("[the file is still UTF-16]\n"),
        TextEncoding::Unknown => {
            report.push_str("[the file is not UTF-8: other bytes are untouched]\n");
        }
    }
    if now.other_links > 0 {
        report.push_str("[the old file had other hard links: they keep the old content]\n");
    }
    report.push_str(&diff(body, changes).to_string());
    report
}
