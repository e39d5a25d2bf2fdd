//! Writes one file.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use antiphon_core::port::CutOffOutcome;
use antiphon_core::{TaskId, ToolResult};

use super::FILE_BYTES_MAX;
use crate::change_note::{self, ChangeNote, Compared, FileDigest, Seen};
use crate::edit::Diff;
use crate::read_tracker::{FileVersion, ReadTracker};
use crate::workspace::{
    DisplayPath, Identity, OpenedPath, ReplaceError, ReplacedFile, Workspace, WriteTarget,
};
use antiphon_toolbox::{StopFlag, Stopped};

pub(super) struct FileWrite {
    pub(super) workspace: Arc<Workspace>,
    pub(super) reads: Arc<ReadTracker>,
    pub(super) task_id: TaskId,
}

/// The file before the write.
struct ExistingFile {
    identity: Identity,
    /// Absent if the file is too large to read.
    contents: Option<Vec<u8>>,
}

/// The place to write to, and what is there.
struct Found<'a> {
    place: WriteTarget<'a>,
    name: String,
    old: Option<ExistingFile>,
}

impl FileWrite {
    /// Writes the file; with a note, only if it is still as it was when the note was made.
    pub(super) fn write(
        &self,
        path: &str,
        content: &str,
        note: Option<&ChangeNote>,
        stop: &StopFlag,
    ) -> Result<ToolResult, Stopped> {
        stop.check()?;
        let Found { place, name, old } = match self.find(path) {
            Ok(found) => found,
            Err(reason) => return Ok(ToolResult::failed(reason)),
        };
        if let Some(old) = &old {
            if old.contents.as_deref() == Some(content.as_bytes()) {
                self.note(&place, old.identity, content);
                return Ok(ToolResult::text(has_content(&name)));
            }
            if let Err(reason) = self.check_seen(&place, old) {
                return Ok(ToolResult::failed(format!("{name} {reason}. Nothing was written.")));
            }
        }
        stop.check()?;
        let digest = note.and_then(|_| self.digest(&place, old.as_ref()));
        if let (Some(note), Some(now)) = (note, digest)
            && !note.is_before(&now)
        {
            let changed = ReplaceError::Changed;
            return Ok(ToolResult::failed(format!("{name} was not written: {changed}")));
        }
        let expected = old.as_ref().map(|old| old.identity);
        match place.replace(&[content.as_bytes()], expected) {
            Ok(replaced) => {
                self.note(&place, replaced.identity, content);
                Ok(ToolResult::text(report(&name, old.as_ref(), content, &replaced)))
            }
            Err(error) => Ok(ToolResult::failed(format!("{name} was not written: {error}"))),
        }
    }

    /// What shows later whether the file was written. `None` when nothing would be, or when the file is
    /// too large for a digest.
    pub(super) fn change_note(&self, path: &str, content: &str) -> Option<ChangeNote> {
        let Found { place, old, .. } = self.find(path).ok()?;
        let is_same = |old: &ExistingFile| old.contents.as_deref() == Some(content.as_bytes());
        let seen = match &old {
            None => Seen::No,
            Some(old) if self.check_seen(&place, old).is_ok() => Seen::Yes,
            Some(old) if is_same(old) => Seen::No,
            Some(_) => return None,
        };
        let before = self.digest(&place, old.as_ref())?;
        let after = FileDigest::of_file(self.name_of(&place), [content.as_bytes()]);
        Some(ChangeNote::new(before, after, seen))
    }

    /// Looks whether the file was written.
    pub(super) fn inspect_cut_off(
        &self,
        path: &str,
        content: &str,
        note: &ChangeNote,
    ) -> CutOffOutcome {
        let Found { place, name, old } = match self.find(path) {
            Ok(found) => found,
            Err(reason) => return change_note::unreadable(&reason),
        };
        let Some(now) = self.digest(&place, old.as_ref()) else {
            return change_note::different(&name);
        };
        match (note.compare(&now), old) {
            (Compared::AsAfter, Some(old)) => {
                self.note(&place, old.identity, content);
                let was_new = note.is_before(&FileDigest::of_no_file(self.name_of(&place)));
                let text = if note.is_before(&now) {
                    has_content(&name)
                } else {
                    wrote(&name, content, if was_new { Before::NoFile } else { Before::File })
                };
                CutOffOutcome::Happened(ToolResult::text(text))
            }
            (Compared::AsBefore, Some(old)) => {
                if let Some(contents) = old.contents.filter(|_| note.was_seen()) {
                    let fingerprint = Some(self.reads.fingerprint_of(&contents));
                    let version = FileVersion { identity: old.identity, fingerprint };
                    self.reads.note(&self.task_id, place.path(), version);
                }
                CutOffOutcome::MayRun
            }
            (Compared::AsBefore, None) => CutOffOutcome::MayRun,
            (Compared::Different, _) | (Compared::AsAfter, None) => change_note::different(&name),
        }
    }

    fn find(&self, path: &str) -> Result<Found<'_>, String> {
        let place = self.workspace.place(path).map_err(|error| error.to_string())?;
        let name = DisplayPath(self.name_of(&place)).to_string();
        let old = place.existing().map(ExistingFile::read).transpose().map_err(|error| {
            format!("{name} is there but cannot be read: {error}. Nothing was written.")
        })?;
        Ok(Found { place, name, old })
    }

    fn name_of<'a>(&self, place: &'a WriteTarget<'_>) -> &'a Path {
        self.workspace.name_of(place.path())
    }

    /// `None` for a file that is too large to read.
    fn digest(&self, place: &WriteTarget<'_>, old: Option<&ExistingFile>) -> Option<FileDigest> {
        let name = self.name_of(place);
        match old {
            None => Some(FileDigest::of_no_file(name)),
            Some(old) => Some(FileDigest::of_file(name, [old.contents.as_deref()?])),
        }
    }

    fn note(&self, place: &WriteTarget<'_>, identity: Identity, content: &str) {
        let fingerprint = Some(self.reads.fingerprint_of(content.as_bytes()));
        self.reads.note(&self.task_id, place.path(), FileVersion { identity, fingerprint });
    }

    /// Whether this task has read the current version.
    fn check_seen(&self, place: &WriteTarget<'_>, old: &ExistingFile) -> Result<(), &'static str> {
        let Some(version) = self.reads.last(&self.task_id, place.path()) else {
            return Err("exists, and this task has not read it: read it first, then write, or \
                        change a part of it with edit");
        };
        let is_same = match (version.fingerprint, &old.contents) {
            (Some(fingerprint), Some(old)) => fingerprint == self.reads.fingerprint_of(old),
            (Some(_) | None, _) => version.identity == old.identity,
        };
        if is_same { Ok(()) } else { Err("changed since you read it: read it again, then write") }
    }
}

impl ExistingFile {
    fn read(found: &OpenedPath) -> std::io::Result<Self> {
        let file = found.open()?;
        let identity = Identity::of_file(&file)?;
        if found.size() > FILE_BYTES_MAX as u64 {
            return Ok(Self { identity, contents: None });
        }
        let mut contents = Vec::new();
        let read = file.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut contents)?;
        Ok(Self { identity, contents: (read <= FILE_BYTES_MAX).then_some(contents) })
    }
}

/// What was there before a write.
#[derive(Clone, Copy)]
enum Before {
    NoFile,
    File,
}

fn wrote(name: &str, content: &str, before: Before) -> String {
    let lines = content.lines().count();
    let did = match before {
        Before::NoFile => "Created",
        Before::File => "Overwrote",
    };
    format!("{did} {name}: {} bytes, {lines} lines.\n", content.len())
}

fn has_content(name: &str) -> String {
    format!("{name} has exactly this content already.")
}

fn report(
    name: &str,
    old: Option<&ExistingFile>,
    content: &str,
    replaced: &ReplacedFile,
) -> String {
    let before = if old.is_some() { Before::File } else { Before::NoFile };
    let mut report = wrote(name, content, before);
    if replaced.other_links > 0 {
        report.push_str("[the old file had other hard links: they keep the old content]\n");
    }
    let Some(old) = old else {
        return report;
    };
    match old.contents.as_deref().map(str::from_utf8) {
        Some(Ok(old)) => {
            if old.contains("\r\n") && !content.contains("\r\n") {
                report.push_str("[lines ended with CRLF before, now they end with LF]\n");
            }
            report.push_str(&Diff::of(old, content).to_string());
        }
        Some(Err(_)) => report.push_str("[the old file was not UTF-8: no diff]\n"),
        None => report.push_str("[the old file was too large for a diff]\n"),
    }
    report
}
