//! Records of a call of `bash`, kept until its result is in the journal: how long it has run, the output
//! so far, and the result once there is one. A later process reads them when this one ends in between.
//!
//! One private file for each call, of bounded size: of a long output the start and the end are kept. The
//! file is not synced. It survives the end of this process; after a loss of power it may be incomplete.
//! A call whose file cannot be written runs without one.
//!
//! | bytes          | content                                                         |
//! |----------------|-----------------------------------------------------------------|
//! | 32             | mark, milliseconds, bytes of output so far, bytes of the result |
//! | 8 KiB          | the start of the output                                         |
//! | 16 KiB         | the rest of the output; the newest bytes replace the oldest     |
//! | up to 256 KiB  | the result as JSON                                              |
//!
//! The command cannot reach the file, and what it prints cannot be taken for the header.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use antiphon_core::{InputBlock, ToolResult};
use antiphon_toolbox::PlainText;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;
use uuid::Uuid;

use crate::process::lock;

/// The first bytes of a file.
const MARK: u64 = u64::from_le_bytes(*b"bash-v1\n");

const HEADER_BYTES: u64 = 32;

/// Most of the start of the output that is kept, in bytes.
const HEAD_BYTES: u64 = 8 * 1024;

/// Most of the end of the output that is kept, in bytes.
const TAIL_BYTES: u64 = 16 * 1024;

/// Longest result that is kept, in bytes of JSON.
const RESULT_BYTES_MAX: u64 = 256 * 1024;

const TAIL_AT: u64 = HEADER_BYTES + HEAD_BYTES;

const RESULT_AT: u64 = TAIL_AT + TAIL_BYTES;

/// Age after which the file of a call is removed, whatever became of the call.
const KEPT_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

/// The folder of the files of calls.
#[derive(Debug, Clone)]
pub(crate) struct CallRecords {
    folder: PathBuf,
}

/// The file of a running call.
pub(crate) struct CallRecord(Mutex<Option<OpenRecord>>);

struct OpenRecord {
    file: File,
    started: Instant,
    output_bytes: u64,
}

/// What a file shows about a call.
#[derive(Debug, PartialEq)]
pub(crate) struct RecordedCall {
    /// How long it had run when that was last recorded.
    pub(crate) elapsed: Duration,
    /// The output so far, as plain text.
    pub(crate) output: String,
    /// The result, if there was one.
    pub(crate) result: Option<ToolResult>,
}

/// A result in the file. Results of `bash` are texts.
#[derive(Debug, Serialize, Deserialize)]
struct RecordedResult {
    texts: Vec<String>,
    is_error: bool,
}

impl CallRecords {
    /// The files in a folder beneath `results`. Removes very old ones. Blocks.
    pub(crate) fn open(results: &Path) -> io::Result<Self> {
        let folder = results.join(".calls");
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        for entry in fs::read_dir(&folder)?.flatten() {
            let written = entry.metadata().and_then(|found| found.modified());
            if written.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > KEPT_MAX)) {
                // If it cannot be removed now, the next process tries again.
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(Self { folder })
    }

    /// Begins the file of a call. It stays empty when it cannot be written.
    pub(crate) async fn begin(&self, call_uuid: Uuid) -> Arc<CallRecord> {
        let path = self.path(call_uuid);
        let open = spawn_blocking(move || OpenRecord::create(&path).ok()).await;
        Arc::new(CallRecord(Mutex::new(open.unwrap_or_default())))
    }

    /// Removes the file of a call.
    pub(crate) async fn remove(&self, call_uuid: Uuid) {
        let path = self.path(call_uuid);
        // A file that is not there was not written. A file that stays is removed when it is old.
        let _ = spawn_blocking(move || fs::remove_file(path)).await;
    }

    /// Reads the file of a call. `None` when there is none, or an incomplete one.
    pub(crate) async fn read(&self, call_uuid: Uuid) -> Option<RecordedCall> {
        let path = self.path(call_uuid);
        spawn_blocking(move || RecordedCall::read(&path)).await.ok()?.ok()
    }

    fn path(&self, call_uuid: Uuid) -> PathBuf {
        self.folder.join(call_uuid.to_string())
    }
}

impl CallRecord {
    /// Adds output.
    pub(crate) async fn add(self: &Arc<Self>, output: &[u8]) {
        if self.is_open() {
            let output = output.to_owned();
            self.write(move |record| record.add(&output)).await;
        }
    }

    /// Records that the call still runs.
    pub(crate) async fn heartbeat(self: &Arc<Self>) {
        if self.is_open() {
            self.write(|record| record.write_header(0)).await;
        }
    }

    /// Records the result. Later output is not kept.
    pub(crate) async fn finish(self: &Arc<Self>, result: &ToolResult) {
        let text = |block: &InputBlock| match block {
            InputBlock::Text(block) => Some(block.text.clone()),
            InputBlock::Image(_) => None,
        };
        let texts: Option<Vec<String>> = result.content.iter().map(text).collect();
        let is_error = result.is_error;
        let json =
            texts.and_then(|texts| serde_json::to_vec(&RecordedResult { texts, is_error }).ok());
        if let Some(json) = json.filter(|json| json.len() as u64 <= RESULT_BYTES_MAX) {
            self.write(move |record| record.finish(&json)).await;
        }
        lock(&self.0).take();
    }

    fn is_open(&self) -> bool {
        lock(&self.0).is_some()
    }

    /// Writes to the file on a thread that may block. The file is given up when that fails.
    async fn write(
        self: &Arc<Self>,
        write: impl FnOnce(&mut OpenRecord) -> io::Result<()> + Send + 'static,
    ) {
        let record = Arc::clone(self);
        // Fails only on a panic.
        let _ = spawn_blocking(move || {
            let mut open = lock(&record.0);
            if open.as_mut().is_some_and(|open| write(open).is_err()) {
                *open = None;
            }
        })
        .await;
    }
}

impl OpenRecord {
    fn create(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let file = options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed()).open(path)?;
        let record = Self { file, started: Instant::now(), output_bytes: 0 };
        record.write_header(0)?;
        Ok(record)
    }

    fn write_header(&self, result_bytes: u64) -> io::Result<()> {
        let elapsed_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let fields = [MARK, elapsed_ms, self.output_bytes, result_bytes];
        let header: Vec<u8> = fields.into_iter().flat_map(u64::to_le_bytes).collect();
        self.file.write_all_at(&header, 0)
    }

    fn add(&mut self, output: &[u8]) -> io::Result<()> {
        let mut rest = output;
        let for_head = HEAD_BYTES.saturating_sub(self.output_bytes);
        let (head, behind) = rest.split_at(rest.len().min(usize::try_from(for_head).unwrap_or(0)));
        if !head.is_empty() {
            self.file.write_all_at(head, HEADER_BYTES + self.output_bytes)?;
            self.output_bytes += head.len() as u64;
        }
        rest = behind;
        // What would be overwritten at once is not written.
        let skipped = rest.len().saturating_sub(usize::try_from(TAIL_BYTES).unwrap_or(0));
        self.output_bytes += skipped as u64;
        rest = rest.get(skipped..).unwrap_or_default();
        while !rest.is_empty() {
            let at = (self.output_bytes - HEAD_BYTES) % TAIL_BYTES;
            let room = usize::try_from(TAIL_BYTES - at).unwrap_or(usize::MAX);
            let (piece, behind) = rest.split_at(rest.len().min(room));
            self.file.write_all_at(piece, TAIL_AT + at)?;
            self.output_bytes += piece.len() as u64;
            rest = behind;
        }
        self.write_header(0)
    }

    fn finish(&mut self, json: &[u8]) -> io::Result<()> {
        self.file.write_all_at(json, RESULT_AT)?;
        self.write_header(json.len() as u64)
    }
}

impl RecordedCall {
    fn read(path: &Path) -> io::Result<Self> {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        let mut bytes = Vec::new();
        file.take(RESULT_AT + RESULT_BYTES_MAX).read_to_end(&mut bytes)?;
        Self::parse(&bytes).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let field = |index: u64| {
            let field = part(bytes, index * 8, 8);
            field.try_into().ok().map(u64::from_le_bytes)
        };
        if field(0)? != MARK {
            return None;
        }
        let (elapsed_ms, output_bytes, result_bytes) = (field(1)?, field(2)?, field(3)?);
        let result: Option<RecordedResult> = match result_bytes {
            0 => None,
            bytes_of_result => serde_json::from_slice(part(bytes, RESULT_AT, bytes_of_result)).ok(),
        };
        let result = result.map(|RecordedResult { texts, is_error }| {
            let content = texts.into_iter().map(InputBlock::text).collect();
            ToolResult { content, is_error }
        });
        let elapsed = Duration::from_millis(elapsed_ms);
        Some(Self { elapsed, output: output(bytes, output_bytes), result })
    }
}

/// The kept output, as plain text.
fn output(bytes: &[u8], output_bytes: u64) -> String {
    let head = part(bytes, HEADER_BYTES, output_bytes.min(HEAD_BYTES));
    let behind = output_bytes.saturating_sub(HEAD_BYTES);
    let tail = if behind <= TAIL_BYTES {
        part(bytes, TAIL_AT, behind).to_owned()
    } else {
        let oldest = behind % TAIL_BYTES;
        let (end, start) =
            (part(bytes, TAIL_AT, oldest), part(bytes, TAIL_AT + oldest, TAIL_BYTES - oldest));
        [start, end].concat()
    };
    let left_out = behind.saturating_sub(TAIL_BYTES);
    if left_out == 0 {
        return plain(&[head, &tail].concat());
    }
    let (head, tail) = (plain(head), plain(&tail));
    format!("{head}\n… {left_out} bytes left out …\n{tail}")
}

/// A part of the file. Empty when the file is shorter.
fn part(bytes: &[u8], at: u64, length: u64) -> &[u8] {
    let range = || {
        let at = usize::try_from(at).ok()?;
        Some(at..at.checked_add(usize::try_from(length).ok()?)?)
    };
    range().and_then(|range| bytes.get(range)).unwrap_or_default()
}

fn plain(bytes: &[u8]) -> String {
    let (mut text, mut plain) = (String::new(), PlainText::default());
    plain.take(bytes, &mut text);
    plain.finish(&mut text);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn recorded(pieces: &[&[u8]], result: Option<&ToolResult>) -> RecordedCall {
        let folder = tempfile::tempdir().unwrap();
        let (records, uuid) = (CallRecords::open(folder.path()).unwrap(), Uuid::new_v4());
        let record = records.begin(uuid).await;
        for piece in pieces {
            record.add(piece).await;
        }
        if let Some(result) = result {
            record.finish(result).await;
            record.add(b"too late").await;
        }
        let read = records.read(uuid).await.unwrap();
        let path = records.path(uuid);
        assert!(fs::metadata(&path).unwrap().len() <= RESULT_AT + RESULT_BYTES_MAX);
        records.remove(uuid).await;
        assert!(!path.exists());
        assert_eq!(records.read(uuid).await, None);
        read
    }

    #[tokio::test]
    async fn short_output_is_kept_whole_also_the_line_that_has_not_ended() {
        let read = recorded(&[b"one\ntw", b"o\n50 %"], None).await;
        assert_eq!((read.output.trim_end(), read.result), ("one\ntwo\n50 %", None));
    }

    #[tokio::test]
    async fn of_long_output_start_and_end_are_kept() {
        let line = |number: u32| format!("line {number:>6}\n");
        let text: String = (0..20_000).map(line).collect();
        for size in [1_000, 7_777, 65_536, text.len()] {
            let pieces: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
            let output = recorded(&pieces, None).await.output;
            assert!(output.starts_with("line      0\n"), "{size}");
            assert!(output.trim_end().ends_with("line  19999"), "{size}");
            let left_out = text.len() as u64 - HEAD_BYTES - TAIL_BYTES;
            assert!(output.contains(&format!("… {left_out} bytes left out …")), "{size}");
            let lines: Vec<&str> = output.lines().filter(|line| line.len() == 11).collect();
            assert!(lines.is_sorted() && lines.len() > 2_000, "{size}: {}", lines.len());
        }
    }

    #[tokio::test]
    async fn a_result_is_kept_and_no_output_can_be_taken_for_one() {
        let result = ToolResult::failed("all of it\n[exit code 1]");
        assert_eq!(recorded(&[b"x"], Some(&result)).await.result, Some(result));
        let forged =
            [&MARK.to_le_bytes()[..], &[1; 24], b"{\"texts\":[\"ok\"],\"is_error\":false}"];
        assert_eq!(recorded(&[&forged.concat()], None).await.result, None);
    }

    #[test]
    fn an_incomplete_file_is_none_or_less_and_never_wrong() {
        assert_eq!(RecordedCall::parse(b""), None);
        assert_eq!(RecordedCall::parse(&[0; 64]), None);
        let mut header: Vec<u8> = [MARK, 1, 40_000, 99].map(u64::to_le_bytes).concat();
        assert_eq!(RecordedCall::parse(&header).unwrap().result, None);
        header.resize(100_000, 0);
        assert_eq!(RecordedCall::parse(&header).unwrap().result, None);
        let huge = [MARK, u64::MAX, u64::MAX, u64::MAX].map(u64::to_le_bytes).concat();
        assert_eq!(RecordedCall::parse(&huge).unwrap().result, None);
    }

    #[tokio::test]
    async fn a_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (records, uuid) = (CallRecords::open(folder.path()).unwrap(), Uuid::new_v4());
        let target = folder.path().join("target");
        fs::write(&target, "untouched").unwrap();
        std::os::unix::fs::symlink(&target, records.path(uuid)).unwrap();
        records.begin(uuid).await.add(b"x").await;
        assert_eq!(fs::read_to_string(&target).unwrap(), "untouched");
        assert_eq!(records.read(uuid).await, None);
    }
}
