//! A recording: requests to a provider and their answers, in a file.
//!
//! One JSON object per line: the request of an exchange, its pieces in order, and its end. Each
//! line has the number of its exchange, so that concurrent exchanges can be distinguished. A last
//! line that a crash truncated is skipped and reported; any other invalid line is a
//! [`RecordingError`] with its number. The format is described in `docs/record-replay.md`.

mod error;
mod line;
mod log;
mod request;

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use antiphon_core::Piece;

pub use error::RecordingError;
pub(crate) use line::{Body, Ending};
pub(crate) use log::Log;
pub(crate) use request::written;

use line::Line;

/// Largest recording, in bytes.
pub const RECORDING_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Longest line of a recording, in bytes, with its line break.
pub const LINE_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Exchanges with a provider.
#[derive(Debug)]
pub struct Recording {
    exchanges: Vec<Exchange>,
    torn_line: Option<u64>,
    /// The highest number of an exchange.
    exchanges_started: u64,
    /// Size of the complete lines.
    bytes: u64,
    lines: u64,
}

/// One request and its answer.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// As JSON, with keys redacted.
    pub(crate) request: String,
    pub(crate) pieces: Vec<Piece>,
    /// `None` when the recorder was stopped first.
    pub(crate) ending: Option<Ending>,
}

impl Recording {
    /// Reads the recording at `path`.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, RecordingError> {
        let path = path.as_ref();
        let unreadable = |error: io::Error| unreadable(path, &error);
        // Checked before it is opened: opening a pipe would wait for its writer.
        if !fs::metadata(path).map_err(unreadable)?.is_file() {
            return Err(unreadable(io::Error::other("not a file")));
        }
        Self::read(path, &File::open(path).map_err(unreadable)?)
    }

    /// Number of requests.
    pub fn exchanges(&self) -> usize {
        self.exchanges.len()
    }

    /// Number of exchanges without an end: the recorder was stopped, or failed, before they ended.
    pub fn unfinished(&self) -> usize {
        self.exchanges.iter().filter(|exchange| exchange.ending.is_none()).count()
    }

    /// Number of the last line, if a crash truncated it. It is not part of the recording.
    pub fn torn_line(&self) -> Option<u64> {
        self.torn_line
    }

    pub(crate) fn into_exchanges(self) -> Vec<Exchange> {
        self.exchanges
    }

    /// Reads `file`, whose name is `path`.
    fn read(path: &Path, file: &File) -> Result<Self, RecordingError> {
        let bytes = file.metadata().map_err(|error| unreadable(path, &error))?.len();
        if bytes > RECORDING_BYTES_MAX {
            return Err(RecordingError::TooLarge { path: path.to_owned(), bytes });
        }
        let mut reader = BufReader::new(file);
        let mut reading = RecordingReader::default();
        let mut text = Vec::new();
        loop {
            text.clear();
            let mut line = (&mut reader).take(LINE_BYTES_MAX as u64 + 1);
            line.read_until(b'\n', &mut text).map_err(|error| unreadable(path, &error))?;
            if text.is_empty() {
                break;
            }
            reading.lines += 1;
            if text.len() > LINE_BYTES_MAX {
                let line = reading.lines;
                return Err(RecordingError::LineTooLong { path: path.to_owned(), line });
            }
            if text.pop() != Some(b'\n') {
                reading.torn = true;
                break;
            }
            reading.take(&text).map_err(|reason| {
                let line = reading.lines;
                RecordingError::Line { path: path.to_owned(), line, reason }
            })?;
        }
        Ok(reading.into())
    }
}

/// A recording, as far as it was read.
#[derive(Default)]
struct RecordingReader {
    exchanges: Vec<Exchange>,
    /// Index of each exchange by its number.
    indices: HashMap<u64, usize>,
    exchanges_started: u64,
    bytes: u64,
    lines: u64,
    torn: bool,
}

impl RecordingReader {
    fn take(&mut self, text: &[u8]) -> Result<(), String> {
        let Line { exchange: number, body } = Line::read(text)?;
        self.bytes += text.len() as u64 + 1;
        let index = self.indices.get(&number);
        let exchange = index.and_then(|index| self.exchanges.get_mut(*index));
        match (exchange, body) {
            (None, Body::Request(request)) => {
                self.indices.insert(number, self.exchanges.len());
                self.exchanges_started = self.exchanges_started.max(number);
                self.exchanges.push(Exchange { request, pieces: Vec::new(), ending: None });
            }
            (Some(_), Body::Request(_)) => {
                return Err(format!("exchange {number} has a request already"));
            }
            (None, Body::Piece(_) | Body::End(_)) => {
                return Err(format!("exchange {number} has no request"));
            }
            (Some(Exchange { ending: Some(_), .. }), Body::Piece(_) | Body::End(_)) => {
                return Err(format!("exchange {number} has ended already"));
            }
            (Some(exchange), Body::Piece(piece)) => exchange.pieces.push(piece),
            (Some(exchange), Body::End(ending)) => exchange.ending = Some(ending),
        }
        Ok(())
    }
}

impl From<RecordingReader> for Recording {
    fn from(reading: RecordingReader) -> Self {
        Self {
            exchanges: reading.exchanges,
            torn_line: reading.torn.then_some(reading.lines),
            exchanges_started: reading.exchanges_started,
            bytes: reading.bytes,
            // A truncated line is overwritten.
            lines: reading.lines - u64::from(reading.torn),
        }
    }
}

fn unreadable(path: &Path, error: &io::Error) -> RecordingError {
    RecordingError::Unreadable { path: path.to_owned(), reason: error.to_string() }
}
