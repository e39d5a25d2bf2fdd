//! Reads a text by range. Holds only the lines to show.

use std::io::{self, Read};

use encoding_rs::{Decoder, Encoding, UTF_8};

use super::rows::Rows;
use crate::blocking::{StopFlag, Stopped};

/// Most of a text that is read to count its lines and to fingerprint it, in bytes. Of a longer text
/// nothing is read after the last line to show.
pub const COUNTED_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Bytes read at once.
const CHUNK_BYTES: usize = 64 * 1024;

/// Bytes read first. Most files were read as a whole with their head, and this read only finds their end.
const FIRST_CHUNK_BYTES: usize = 512;

/// How a scan ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scanned {
    /// Whether the scan reached the end of the text.
    pub to_the_end: bool,
    /// Whether some bytes are invalid in the encoding. They are shown as `�`.
    pub broken: bool,
}

/// Why a scan failed.
#[derive(Debug)]
pub enum ScanError {
    /// A stop was requested.
    Stopped,
    /// The text could not be read.
    Io(io::Error),
}

/// Decodes a text into `rows` and passes its bytes to `raw`. `head` is the part that was read already.
pub fn scan(
    head: &[u8],
    mut rest: impl Read,
    encoding: &'static Encoding,
    rows: &mut Rows,
    mut raw: impl FnMut(&[u8]),
    stop: &StopFlag,
) -> Result<Scanned, ScanError> {
    let mut decoding = Decoding::new(encoding);
    raw(head);
    decoding.push(head, Last::No, rows);
    let mut read_bytes = head.len() as u64;
    let mut chunk = vec![0; FIRST_CHUNK_BYTES];
    let to_the_end = loop {
        stop.check()?;
        if rows.is_full() && read_bytes > COUNTED_BYTES_MAX {
            break false;
        }
        let read = match rest.read(&mut chunk) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        raw(&chunk[..read]);
        if read == 0 {
            decoding.push(&[], Last::Yes, rows);
            break true;
        }
        decoding.push(&chunk[..read], Last::No, rows);
        read_bytes += read as u64;
        chunk.resize(CHUNK_BYTES, 0);
    };
    Ok(Scanned { to_the_end, broken: decoding.broken })
}

/// Decodes chunks of bytes.
struct Decoding {
    decoder: Decoder,
    encoding: &'static Encoding,
    text: String,
    /// Whether the decoder may hold back bytes. From then on no bytes are skipped.
    started: bool,
    broken: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    Yes,
    No,
}

impl Decoding {
    fn new(encoding: &'static Encoding) -> Self {
        let decoder = encoding.new_decoder_with_bom_removal();
        Self { decoder, encoding, text: String::new(), started: false, broken: false }
    }

    fn push(&mut self, mut bytes: &[u8], last: Last, rows: &mut Rows) {
        if self.encoding == UTF_8 && (rows.is_full() || !self.started) {
            let skipped = rows.skip(bytes);
            if skipped > 0 {
                self.decoder = self.encoding.new_decoder_without_bom_handling();
            }
            bytes = &bytes[skipped..];
            if bytes.is_empty() && (last == Last::No || rows.is_full()) {
                return;
            }
        }
        self.started = true;
        self.text.clear();
        // Enough capacity for the longest possible text, so that one call decodes all bytes.
        let capacity = self.decoder.max_utf8_buffer_length(bytes.len());
        self.text.reserve(capacity.unwrap_or(bytes.len() * 3 + 16));
        let (_, _, broken) =
            self.decoder.decode_to_string(bytes, &mut self.text, last == Last::Yes);
        self.broken |= broken;
        rows.push(&self.text);
    }
}

impl From<Stopped> for ScanError {
    fn from(Stopped: Stopped) -> Self {
        Self::Stopped
    }
}

impl From<io::Error> for ScanError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
