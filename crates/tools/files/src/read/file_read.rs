//! Reads one file or folder.

use std::fmt::Write;
use std::fs::File;
use std::hash::Hasher;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use antiphon_core::{IMAGE_BYTES_MAX, ImageBlock, InputBlock, TaskId, ToolResult};

use super::notes::{self, Text};
use super::{Contents, SAMPLE_BYTES_MAX, recognize};
use crate::read_tracker::{FileVersion, ReadTracker};
use crate::workspace::{DisplayPath, EntryKind, Identity, OpenedPath, Workspace};
use antiphon_toolbox::paging::{COUNTED_BYTES_MAX, LongLines, Rows, ScanError, scan};
use antiphon_toolbox::{StopFlag, Stopped};

/// Most names listed of a folder.
pub const FOLDER_ENTRIES_MAX: usize = 500;

/// Most entries of a folder that are counted.
const FOLDER_LOOKED_AT_MAX: usize = 10_000;

/// Bytes of a binary file that are shown.
const BINARY_SHOWN_BYTES: usize = 16;

pub(super) struct FileRead {
    pub(super) workspace: Arc<Workspace>,
    pub(super) reads: Arc<ReadTracker>,
    pub(super) task_id: TaskId,
    /// The first line, from 1.
    pub(super) first: u64,
    /// How many lines.
    pub(super) limit: u64,
}

impl FileRead {
    pub(super) fn read(&self, path: &str, stop: &StopFlag) -> Result<ToolResult, Stopped> {
        stop.check()?;
        let found = match self.workspace.open_path(path) {
            Ok(found) => found,
            Err(error) => return Ok(ToolResult::failed(error.to_string())),
        };
        let name = self.workspace.name_of(found.path());
        let read = match found.kind() {
            EntryKind::Folder => list(&found, name).map_err(ScanError::Io),
            EntryKind::File => self.show(&found, name, stop),
        };
        match read {
            Ok(result) => Ok(result),
            Err(ScanError::Stopped) => Err(Stopped),
            Err(ScanError::Io(error)) => {
                let name = DisplayPath(name);
                Ok(ToolResult::failed(format!("{name} cannot be read: {error}. Tell the user.")))
            }
        }
    }

    fn show(
        &self,
        found: &OpenedPath,
        name: &Path,
        stop: &StopFlag,
    ) -> Result<ToolResult, ScanError> {
        let mut file = found.open()?;
        // Taken before reading, so that a change during the read counts as a later change.
        let identity = Identity::of_file(&file)?;
        let head = head_of(&mut file, SAMPLE_BYTES_MAX)?;
        let mut fingerprint = None;
        let result = match recognize(&head) {
            Contents::Image(mime) => image(mime, name, found.size(), head, file)?,
            Contents::Binary(what) => ToolResult::text(binary(what, name, found.size(), &head)),
            Contents::Text(encoding, certainty) => {
                let mut rows = Rows::new(self.first, self.limit, LongLines::Cut);
                // A file too large to be written needs no hash; its identity is enough.
                let is_small = found.size() <= COUNTED_BYTES_MAX;
                let mut hasher = is_small.then(|| self.reads.fingerprint());
                let raw = |raw: &[u8]| hasher.iter_mut().for_each(|hasher| hasher.write(raw));
                let scanned = scan(&head, file, encoding, &mut rows, raw, stop)?;
                fingerprint = hasher.filter(|_| scanned.to_the_end).map(|hasher| hasher.finish());
                let (size, first) = (found.size(), self.first);
                let rows = rows.finish();
                notes::text(Text { name, size, first, rows, scanned, encoding, certainty })
            }
        };
        self.reads.note(&self.task_id, found.path(), FileVersion { identity, fingerprint });
        Ok(result)
    }
}

/// Reads up to `max` bytes.
fn head_of(file: &mut impl Read, max: usize) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    file.take(max as u64).read_to_end(&mut head)?;
    Ok(head)
}

fn image(
    mime: &str,
    name: &Path,
    size: u64,
    mut data: Vec<u8>,
    file: File,
) -> io::Result<ToolResult> {
    let name = DisplayPath(name);
    let most = IMAGE_BYTES_MAX as u64 + 1;
    file.take(most.saturating_sub(data.len() as u64)).read_to_end(&mut data)?;
    match ImageBlock::new(mime, data) {
        Ok(block) => Ok(ToolResult {
            content: vec![
                InputBlock::text(format!("{name}: {mime}, {size} bytes")),
                InputBlock::Image(block),
            ],
            is_error: false,
        }),
        Err(error) => Ok(ToolResult::failed(format!(
            "{name} ({mime}, {size} bytes) cannot be shown: {error}. Make a smaller copy and read \
             that."
        ))),
    }
}

fn binary(what: &str, name: &Path, size: u64, head: &[u8]) -> String {
    let mut bytes = String::new();
    for byte in head.iter().take(BINARY_SHOWN_BYTES) {
        // Writing to a string does not fail.
        let _ = write!(bytes, " {byte:02x}");
    }
    format!(
        "{} is not text but {what}: {size} bytes, not shown. It begins with{bytes}. Use a program \
         made for it to look inside.",
        DisplayPath(name)
    )
}

fn list(found: &OpenedPath, name: &Path) -> io::Result<ToolResult> {
    let mut entries = found.entries(FOLDER_LOOKED_AT_MAX)?;
    entries.sort();
    let count = match entries.len() {
        FOLDER_LOOKED_AT_MAX => format!("{FOLDER_LOOKED_AT_MAX} entries or more"),
        1 => "1 entry".to_owned(),
        count => format!("{count} entries"),
    };
    let mut text = format!("{} is a folder with {count}:\n", DisplayPath(name));
    for (entry, is_folder) in entries.iter().take(FOLDER_ENTRIES_MAX) {
        let shown = DisplayPath(Path::new(entry)).to_string();
        text.push_str(shown.trim_matches('`'));
        text.push_str(if *is_folder { "/\n" } else { "\n" });
    }
    if entries.len() > FOLDER_ENTRIES_MAX {
        let more = entries.len() - FOLDER_ENTRIES_MAX;
        // Writing to a string does not fail.
        let _ = writeln!(text, "[{more} more: use glob to find a file by its name]");
    }
    Ok(ToolResult::text(text))
}
