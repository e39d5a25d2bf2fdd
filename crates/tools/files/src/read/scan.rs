//! Reading a text by range, without holding more of it than is shown.

use std::io::{self, Read};

use encoding_rs::{Decoder, Encoding, UTF_8};

use super::rows::Rows;
use crate::toolbox::{Stop, Stopped};

/// How much of a text is gone through to count its lines and to fingerprint it, in bytes. Of a
/// longer one nothing is looked at behind what is shown.
pub const COUNTED_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Bytes read at once.
const CHUNK_BYTES: usize = 64 * 1024;

/// How a scan ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scanned {
    /// Whether it came to the end of the text.
    pub(crate) to_the_end: bool,
    /// Whether something was no character of the encoding, and is shown as `�`.
    pub(crate) broken: bool,
}

/// Why a scan did not end.
#[derive(Debug)]
pub(crate) enum ScanError {
    /// It was asked to stop.
    Stopped,
    /// The system said something.
    Io(io::Error),
}

/// Passes a text on to `rows`, and its bytes to `raw`. `head` was read from it already.
pub(crate) fn scan(
    head: &[u8],
    mut rest: impl Read,
    encoding: &'static Encoding,
    rows: &mut Rows,
    mut raw: impl FnMut(&[u8]),
    stop: &Stop,
) -> Result<Scanned, ScanError> {
    let mut decoding = Decoding::new(encoding);
    raw(head);
    decoding.push(head, Last::No, rows);
    let mut passed = head.len() as u64;
    let mut chunk = vec![0; CHUNK_BYTES];
    let to_the_end = loop {
        stop.check()?;
        if rows.is_full() && passed > COUNTED_BYTES_MAX {
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
        passed += read as u64;
    };
    Ok(Scanned { to_the_end, broken: decoding.broken })
}

/// Bytes on their way to become text.
struct Decoding {
    decoder: Decoder,
    encoding: &'static Encoding,
    text: String,
    /// Whether the decoder is within the text: what it holds back must not be left behind.
    begun: bool,
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
        Self { decoder, encoding, text: String::new(), begun: false, broken: false }
    }

    fn push(&mut self, mut bytes: &[u8], last: Last, rows: &mut Rows) {
        if self.encoding == UTF_8 && (rows.is_full() || !self.begun) {
            let passed = rows.pass_by(bytes);
            if passed > 0 {
                self.decoder = self.encoding.new_decoder_without_bom_handling();
            }
            bytes = &bytes[passed..];
            if bytes.is_empty() && (last == Last::No || rows.is_full()) {
                return;
            }
        }
        self.begun = true;
        self.text.clear();
        // Room for the most that can become of the bytes: one call takes them all.
        let room = self.decoder.max_utf8_buffer_length(bytes.len());
        self.text.reserve(room.unwrap_or(bytes.len() * 3 + 16));
        let (_, _, broken) =
            self.decoder.decode_to_string(bytes, &mut self.text, last == Last::Yes);
        self.broken |= broken;
        rows.push(&self.text);
    }
}

/// Reads up to `max` bytes.
pub(crate) fn head_of(file: &mut impl Read, max: usize) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    file.take(max as u64).read_to_end(&mut head)?;
    Ok(head)
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
