//! The output of a program as an asciicast (version 2), for players. Starts anew at
//! [`RECORDING_BYTES_MAX`] with the current screen; one previous recording is kept. A full disk
//! ends the recording and nothing else.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::Instant;

use serde_json::json;

use crate::pty::size::Size;

/// Longest recording, in bytes. At most two are kept.
pub const RECORDING_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Records the output of a program.
pub(crate) struct Recording {
    path: PathBuf,
    before: PathBuf,
    file: Option<File>,
    begun: Instant,
    bytes: u64,
    size: Size,
    /// The start of an incomplete character.
    cut: Vec<u8>,
}

impl Recording {
    /// Starts a recording. An existing one becomes the previous one.
    pub(crate) fn begin(path: PathBuf, before: PathBuf, size: Size) -> Self {
        let mut recording = Self {
            path,
            before,
            file: None,
            begun: Instant::now(),
            bytes: 0,
            size,
            cut: Vec::new(),
        };
        let begun = recording.renew();
        recording.settle(begun);
        recording
    }

    pub(crate) fn write(&mut self, output: &[u8], size: Size, screen: impl FnOnce() -> String) {
        if self.file.is_none() {
            return;
        }
        let done = self.try_write(output, size, screen);
        self.settle(done);
    }

    fn try_write(
        &mut self,
        output: &[u8],
        size: Size,
        screen: impl FnOnce() -> String,
    ) -> io::Result<()> {
        if size != self.size {
            self.size = size;
            self.event("r", &format!("{}x{}", size.columns(), size.rows()))?;
        }
        self.cut.extend_from_slice(output);
        let whole = whole_characters(&self.cut);
        let rest = self.cut.split_off(whole);
        let text = String::from_utf8_lossy(&std::mem::replace(&mut self.cut, rest)).into_owned();
        self.event("o", &text)?;
        if self.bytes > RECORDING_BYTES_MAX {
            self.renew()?;
            self.event("o", &screen())?;
        }
        Ok(())
    }

    fn event(&mut self, kind: &str, data: &str) -> io::Result<()> {
        let at = self.begun.elapsed().as_secs_f64();
        self.line(&json!([at, kind, data]))
    }

    fn line(&mut self, line: &serde_json::Value) -> io::Result<()> {
        let line = format!("{line}\n");
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write_all(line.as_bytes())?;
        self.bytes += u64::try_from(line.len()).unwrap_or(u64::MAX);
        Ok(())
    }

    fn renew(&mut self) -> io::Result<()> {
        if let Err(error) = fs::rename(&self.path, &self.before)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error);
        }
        let mut options = OpenOptions::new();
        self.file =
            Some(options.write(true).create(true).truncate(true).mode(0o600).open(&self.path)?);
        self.begun = Instant::now();
        self.bytes = 0;
        self.line(&json!({
            "version": 2,
            "width": self.size.columns(),
            "height": self.size.rows(),
            "timestamp": chrono::Utc::now().timestamp(),
            "env": { "TERM": "xterm-256color" },
        }))
    }

    fn settle(&mut self, done: io::Result<()>) {
        if let Err(error) = done {
            tracing::warn!(%error, path = %self.path.display(), "the recording ends here");
            self.file = None;
        }
    }
}

/// Number of bytes before an incomplete character at the end.
fn whole_characters(bytes: &[u8]) -> usize {
    let from = bytes.len().saturating_sub(3);
    let starts = |index: &usize| bytes[*index] >= 0xC0;
    let Some(last) = (from..bytes.len()).rev().find(starts) else { return bytes.len() };
    match std::str::from_utf8(&bytes[last..]) {
        Err(error) if error.error_len().is_none() => last,
        Ok(_) | Err(_) => bytes.len(),
    }
}
