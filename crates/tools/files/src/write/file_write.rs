//! Writes one file.

use std::io::Read;
use std::sync::Arc;

use antiphon_core::{TaskId, ToolResult};

use super::FILE_BYTES_MAX;
use crate::edit::Diff;
use crate::read_tracker::{FileVersion, ReadTracker};
use crate::workspace::{DisplayPath, Identity, OpenedPath, ReplacedFile, Workspace, WriteTarget};
use antiphon_toolbox::{Stop, Stopped};

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

impl FileWrite {
    pub(super) fn write(
        &self,
        path: &str,
        content: &str,
        stop: &Stop,
    ) -> Result<ToolResult, Stopped> {
        stop.check()?;
        let place = match self.workspace.place(path) {
            Ok(place) => place,
            Err(error) => return Ok(ToolResult::failed(error.to_string())),
        };
        let name = DisplayPath(self.workspace.name_of(place.path())).to_string();
        let old = match place.existing().map(ExistingFile::read).transpose() {
            Ok(old) => old,
            Err(error) => {
                return Ok(ToolResult::failed(format!(
                    "{name} is there but cannot be read: {error}. Nothing was written."
                )));
            }
        };
        if let Some(old) = &old {
            if old.contents.as_deref() == Some(content.as_bytes()) {
                self.note(&place, old.identity, content);
                return Ok(ToolResult::text(format!("{name} has exactly this content already.")));
            }
            if let Err(reason) = self.check_seen(&place, old) {
                return Ok(ToolResult::failed(format!("{name} {reason}. Nothing was written.")));
            }
        }
        stop.check()?;
        let expected = old.as_ref().map(|old| old.identity);
        match place.replace(&[content.as_bytes()], expected) {
            Ok(replaced) => {
                self.note(&place, replaced.identity, content);
                Ok(ToolResult::text(report(&name, old.as_ref(), content, &replaced)))
            }
            Err(error) => Ok(ToolResult::failed(format!("{name} was not written: {error}"))),
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

fn report(
    name: &str,
    old: Option<&ExistingFile>,
    content: &str,
    replaced: &ReplacedFile,
) -> String {
    let lines = content.lines().count();
    let did = if old.is_some() { "Overwrote" } else { "Created" };
    let mut report = format!("{did} {name}: {} bytes, {lines} lines.\n", content.len());
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
