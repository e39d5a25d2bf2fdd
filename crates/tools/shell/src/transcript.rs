//! The output of one call: plain text, in memory while it is short, in a file when it is long.
//!
//! The file is written and read through its descriptor, so it may be renamed or removed meanwhile.
//! If it cannot be written, the end of the output stays in memory, the rest is lost, and the
//! excerpt says so.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use antiphon_toolbox::{PLAIN_LINE_CHARS_MAX, PlainText};

use crate::result_files::ResultFiles;

/// Most text in memory, in bytes. More text goes to the file.
const HELD_BYTES_MAX: usize = 256 * 1024;

/// Longest start of a long output that is shown, in bytes.
const HEAD_BYTES_MAX: usize = 10_000;

/// Longest end of a long output that is shown, in bytes. Errors are usually at the end.
const TAIL_BYTES_MAX: usize = 18_000;

/// The output of a call so far.
#[derive(Debug)]
pub(crate) struct Transcript {
    text: PlainText,
    /// Text that is not in the file, from `held_from` on.
    held: String,
    held_from: u64,
    /// Bytes in the file.
    filed: u64,
    lines: u64,
    results: ResultFiles,
    name: String,
    file: Option<File>,
    /// Why the rest of the text is not in the file.
    lost: Option<String>,
}

/// A position in the output, up to which a reader has read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    bytes: u64,
    lines: u64,
    /// The part of the incomplete last line that was shown.
    pending: String,
}

/// A part of the output to show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Excerpt {
    pub(crate) head: String,
    pub(crate) gap: Option<Gap>,
    pub(crate) tail: String,
}

/// The part that an excerpt leaves out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) lines: u64,
    pub(crate) bytes: u64,
    /// The name of the result with the whole output, or why there is none.
    pub(crate) whole: Result<String, String>,
}

impl Excerpt {
    pub(crate) fn is_empty(&self) -> bool {
        self.head.is_empty() && self.gap.is_none() && self.tail.is_empty()
    }
}

impl Transcript {
    /// An empty transcript. If it becomes long, it is stored in `results` under `name`.
    pub(crate) fn new(results: ResultFiles, name: String) -> Self {
        Self {
            text: PlainText::default(),
            held: String::new(),
            held_from: 0,
            filed: 0,
            lines: 0,
            results,
            name,
            file: None,
            lost: None,
        }
    }

    /// Adds output. Returns the lines that are complete now.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> &str {
        self.add(|text, out| text.take(bytes, out))
    }

    /// Ends the output. Returns the last line.
    pub(crate) fn finish(&mut self) -> &str {
        self.add(PlainText::finish)
    }

    fn add(&mut self, write: impl FnOnce(&mut PlainText, &mut String)) -> &str {
        let before = self.held.len();
        write(&mut self.text, &mut self.held);
        let added = self.held.get(before..).unwrap_or_default();
        self.lines += count(added);
        added
    }

    /// The incomplete last line.
    pub(crate) fn pending(&self) -> Option<String> {
        self.text.has_pending().then(|| self.text.pending())
    }

    /// Whether [`Transcript::file`] should be called to free memory.
    pub(crate) fn is_full(&self) -> bool {
        self.held.len() > HELD_BYTES_MAX
    }

    /// Whether [`Transcript::new_output`] may have to read or write a file.
    pub(crate) fn is_long(&self) -> bool {
        self.file.is_some()
            || self.held.len() + PLAIN_LINE_CHARS_MAX > HEAD_BYTES_MAX + TAIL_BYTES_MAX
    }

    /// Moves the text in memory to the file. Blocks.
    pub(crate) fn file(&mut self) {
        if self.lost.is_none()
            && let Err(error) = self.try_file()
        {
            self.lost = Some(error.to_string());
        }
        if self.lost.is_some() && self.held.len() > HELD_BYTES_MAX {
            let keep = ceil(&self.held, self.held.len() - TAIL_BYTES_MAX);
            self.held.drain(..keep);
            self.held_from += keep as u64;
        }
    }

    /// The same, for a result that names the file: the name must be good after a crash too.
    fn file_durably(&mut self) {
        self.file();
        if self.lost.is_none()
            && let Some(Err(error)) = self.file.as_ref().map(|file| self.results.sync(file))
        {
            self.lost = Some(error.to_string());
        }
    }

    fn try_file(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(self.results.create(&self.name)?),
        };
        file.write_all(self.held.as_bytes())?;
        self.filed += self.held.len() as u64;
        self.held_from = self.filed;
        self.held.clear();
        Ok(())
    }

    /// The output since `cursor`, which moves to the end. Reads the file, and writes it if the
    /// excerpt leaves something out.
    pub(crate) fn new_output(&mut self, cursor: &mut Cursor) -> Excerpt {
        let pending = self.text.pending();
        let from = std::mem::replace(
            cursor,
            Cursor { bytes: self.end(), lines: self.lines, pending: pending.clone() },
        );
        let bytes = self.end() - from.bytes;
        let lines = self.lines - from.lines;
        if bytes + pending.len() as u64 <= (HEAD_BYTES_MAX + TAIL_BYTES_MAX) as u64 {
            let head = self.range(from.bytes, self.end()) + &pending;
            // Show only the new part of a line that has grown.
            let head = head.strip_prefix(&from.pending).map_or(head.clone(), str::to_owned);
            return Excerpt { head, gap: None, tail: String::new() };
        }
        let head = self.range(from.bytes, from.bytes + HEAD_BYTES_MAX as u64);
        let head = whole_lines_from_start(head);
        let pending = tail_of(&pending, TAIL_BYTES_MAX / 2);
        let tail_bytes = (TAIL_BYTES_MAX - pending.len()) as u64;
        let tail = self.range(self.end().saturating_sub(tail_bytes).max(from.bytes), self.end());
        let tail = whole_lines_to_end(tail);
        self.file_durably();
        let gap = Gap {
            lines: lines.saturating_sub(count(&head) + count(&tail)),
            bytes: bytes.saturating_sub((head.len() + tail.len()) as u64),
            whole: self.lost.clone().map_or_else(|| Ok(self.name.clone()), Err),
        };
        Excerpt { head, gap: Some(gap), tail: tail + pending }
    }

    fn end(&self) -> u64 {
        self.held_from + self.held.len() as u64
    }

    /// A part of the text, without what was lost of it.
    fn range(&self, from: u64, to: u64) -> String {
        let mut text = String::new();
        if from < self.filed
            && let Some(file) = &self.file
        {
            let length = usize::try_from(self.filed.min(to) - from).unwrap_or(0);
            let mut bytes = vec![0; length];
            // Text that cannot be read anymore is left out.
            let read = file.read_exact_at(&mut bytes, from);
            text.push_str(&read.map(|()| lenient(&bytes)).unwrap_or_default());
        }
        let inside = |at: u64| usize::try_from(at.saturating_sub(self.held_from)).unwrap_or(0);
        let from = ceil(&self.held, inside(from));
        let to = ceil(&self.held, inside(to).max(from));
        text.push_str(self.held.get(from..to).unwrap_or_default());
        text
    }
}

/// Decodes text that may be cut within a character at either end.
fn lenient(bytes: &[u8]) -> String {
    bytes.utf8_chunks().map(|chunk| chunk.valid()).collect()
}

/// The first character boundary at or after `at`.
fn ceil(text: &str, at: usize) -> usize {
    (at..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

fn tail_of(text: &str, bytes_max: usize) -> &str {
    text.get(ceil(text, text.len().saturating_sub(bytes_max))..).unwrap_or_default()
}

/// Removes an incomplete line at the end, unless that is most of the text.
fn whole_lines_from_start(mut text: String) -> String {
    match text.rfind('\n') {
        Some(last) if last >= text.len() / 2 => text.truncate(last + 1),
        Some(_) | None => {}
    }
    text
}

/// Removes an incomplete line at the start, unless that is most of the text.
fn whole_lines_to_end(text: String) -> String {
    match text.find('\n') {
        Some(first) if first < text.len() / 2 => {
            text.get(first + 1..).unwrap_or_default().to_owned()
        }
        Some(_) | None => text,
    }
}

fn count(text: &str) -> u64 {
    let (bytes, mut at, mut lines) = (text.as_bytes(), 0, 0);
    while at < bytes.len() {
        lines += u64::from(bytes[at] == b'\n');
        at += 1;
    }
    lines
}

#[cfg(test)]
mod tests {
    use antiphon_core::TaskId;

    use super::*;

    fn transcript() -> (tempfile::TempDir, Transcript) {
        let folder = tempfile::tempdir().unwrap();
        let results = ResultFiles::of(folder.path(), &TaskId::parse("task").unwrap());
        (folder, Transcript::new(results, "output".to_owned()))
    }

    fn numbered(lines: std::ops::Range<u32>) -> String {
        lines.fold(String::new(), |text, line| text + &format!("line {line:>6}\n"))
    }

    #[test]
    fn short_output_is_shown_whole_and_not_written_to_disk() {
        let (folder, mut transcript) = transcript();
        transcript.take(b"one\ntwo\nthr");
        let mut cursor = Cursor::default();
        assert_eq!(transcript.new_output(&mut cursor).head, "one\ntwo\nthr");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn only_new_output_is_shown() {
        let (_folder, mut transcript) = transcript();
        let mut cursor = Cursor::default();
        transcript.take(b"one\nContinue? ");
        assert_eq!(transcript.new_output(&mut cursor).head, "one\nContinue? ");
        assert_eq!(transcript.new_output(&mut cursor).head, "");
        transcript.take(b"yes\ntwo\n");
        assert_eq!(transcript.new_output(&mut cursor).head, "yes\ntwo\n");
        transcript.take(b"10%");
        assert_eq!(transcript.new_output(&mut cursor).head, "10%");
        transcript.take(b"\r20%");
        assert_eq!(transcript.new_output(&mut cursor).head, "20%");
    }

    #[test]
    fn long_output_is_shown_in_part_and_stored_whole() {
        let (folder, mut transcript) = transcript();
        let text = numbered(0..100_000);
        for piece in text.as_bytes().chunks(4096) {
            transcript.take(piece);
            if transcript.is_full() {
                transcript.file();
            }
            assert!(transcript.held.len() < HELD_BYTES_MAX + 8192);
        }
        let excerpt = transcript.new_output(&mut Cursor::default());
        let gap = excerpt.gap.unwrap();
        assert!(excerpt.head.starts_with("line      0\n") && excerpt.head.ends_with('\n'));
        assert!(excerpt.tail.starts_with("line ") && excerpt.tail.ends_with("line  99999\n"));
        assert!(excerpt.head.len() + excerpt.tail.len() <= HEAD_BYTES_MAX + TAIL_BYTES_MAX);
        assert_eq!(gap.lines + count(&excerpt.head) + count(&excerpt.tail), 100_000);
        assert_eq!(gap.whole, Ok("output".to_owned()));
        assert_eq!(std::fs::read_to_string(folder.path().join("task/output")).unwrap(), text);
    }

    #[test]
    fn a_file_that_is_removed_is_still_read() {
        let (folder, mut transcript) = transcript();
        transcript.take(numbered(0..1000).as_bytes());
        transcript.file();
        std::fs::remove_file(folder.path().join("task/output")).unwrap();
        assert_eq!(transcript.new_output(&mut Cursor::default()).head, numbered(0..1000));
    }

    #[test]
    fn without_a_file_start_and_end_are_shown_and_the_loss_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let in_the_way = folder.path().join("file");
        std::fs::write(&in_the_way, "").unwrap();
        let results = ResultFiles::of(&in_the_way, &TaskId::parse("task").unwrap());
        let mut transcript = Transcript::new(results, "output".to_owned());
        for _ in 0..10 {
            transcript.take(numbered(0..10_000).as_bytes());
            if transcript.is_full() {
                transcript.file();
            }
        }
        let excerpt = transcript.new_output(&mut Cursor::default());
        assert!(excerpt.tail.ends_with("line   9999\n"));
        assert!(excerpt.gap.unwrap().whole.unwrap_err().contains("Not a directory"));
    }

    #[test]
    fn characters_are_never_cut() {
        let (_folder, mut transcript) = transcript();
        let text = "→".repeat(100_000);
        transcript.take(text.as_bytes());
        transcript.file();
        let excerpt = transcript.new_output(&mut Cursor::default());
        assert!(excerpt.head.chars().chain(excerpt.tail.chars()).all(|char| char == '→'));
        assert!(excerpt.head.len() > HEAD_BYTES_MAX / 2);
    }
}
