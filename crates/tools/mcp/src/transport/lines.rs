//! Reads lines of a stream up to a maximum length.
//!
//! A longer line is read to its end and discarded, but the id of the request it answers is kept, so
//! that the caller of the request gets an error. A line without an end is an error.

use std::io;

use rmcp::model::RequestId;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// Most bytes of one line that are discarded before reading fails.
const DISCARD_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Bytes per read.
const CHUNK_BYTES: usize = 64 * 1024;

/// Result of reading a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line without its line break.
    Whole(Vec<u8>),
    /// The line was too long; the id of the request it answers, if it answers one.
    TooLong(Option<RequestId>),
    /// End of the stream.
    End,
}

pub(crate) struct Lines<R> {
    reader: BufReader<R>,
    bytes_max: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(reader: R, bytes_max: usize) -> Self {
        Self { reader: BufReader::with_capacity(CHUNK_BYTES, reader), bytes_max }
    }

    /// Reads the next line. Not cancel-safe: a partial line would be lost.
    pub(crate) async fn next(&mut self) -> io::Result<Line> {
        let mut line = Vec::new();
        let mut discarding: Option<(IdScan, usize)> = None;
        loop {
            let chunk = self.reader.fill_buf().await?;
            if chunk.is_empty() {
                // A last line without a line break is a partial message.
                return Ok(Line::End);
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let piece = &chunk[..end.unwrap_or(chunk.len())];
            match &mut discarding {
                Some((scan, discarded)) => {
                    scan.feed(piece);
                    *discarded += piece.len();
                    if *discarded > DISCARD_BYTES_MAX {
                        return Err(io::Error::other("a line without an end"));
                    }
                }
                None if line.len() + piece.len() > self.bytes_max => {
                    let mut scan = IdScan::default();
                    scan.feed(&line);
                    scan.feed(piece);
                    discarding = Some((scan, line.len() + piece.len()));
                    line = Vec::new();
                }
                None => line.extend_from_slice(piece),
            }
            let used = piece.len() + usize::from(end.is_some());
            self.reader.consume(used);
            if end.is_some() {
                return Ok(match discarding {
                    Some((scan, _)) => Line::TooLong(scan.answered()),
                    None => Line::Whole(line),
                });
            }
        }
    }
}

/// Id of the request that a text answers, even if the text is not valid JSON.
pub(crate) fn answered(text: &[u8]) -> Option<RequestId> {
    let mut scan = IdScan::default();
    scan.feed(text);
    scan.answered()
}

/// Finds the `id` of a JSON-RPC answer without keeping the answer.
#[derive(Default)]
struct IdScan {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// The last string at the top level, up to [`WORD_BYTES_MAX`].
    word: Vec<u8>,
    /// The current top-level key.
    key: Vec<u8>,
    digits: Vec<u8>,
    is_answer: bool,
}

/// Longest key or number that matters.
const WORD_BYTES_MAX: usize = 20;

impl IdScan {
    fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.step(*byte);
        }
    }

    fn step(&mut self, byte: u8) {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ if self.depth == 1 && self.word.len() < WORD_BYTES_MAX => self.word.push(byte),
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                self.word.clear();
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b':' if self.depth == 1 => {
                self.key = std::mem::take(&mut self.word);
                self.is_answer |= self.key == b"result" || self.key == b"error";
            }
            b',' if self.depth == 1 => self.key.clear(),
            b'0'..=b'9'
                if self.depth == 1 && self.key == b"id" && self.digits.len() < WORD_BYTES_MAX =>
            {
                self.digits.push(byte);
            }
            _ => {}
        }
    }

    /// Id of the request it answers. The client's ids are numbers.
    fn answered(&self) -> Option<RequestId> {
        let digits = std::str::from_utf8(&self.digits).ok()?;
        self.is_answer.then(|| digits.parse().ok().map(RequestId::Number)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(text: &str, bytes_max: usize) -> Vec<Line> {
        let mut lines = Lines::new(text.as_bytes(), bytes_max);
        let mut found = Vec::new();
        loop {
            let line = lines.next().await.unwrap();
            if line == Line::End {
                return found;
            }
            found.push(line);
        }
    }

    #[tokio::test]
    async fn lines_are_whole_and_half_a_line_is_none() {
        let whole = |text: &str| Line::Whole(text.as_bytes().to_vec());
        assert_eq!(all("one\n\ntwo\nthr", 10).await, [whole("one"), whole(""), whole("two")]);
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_costs_itself_and_its_request_is_known() {
        let filler = "x".repeat(100);
        let cases = [
            (
                format!(r#"{{"jsonrpc":"2.0","id":17,"result":{{"id":99,"text":"{filler}"}}}}"#),
                Some(17),
            ),
            (
                format!(r#"{{"result":{{"text":"\"id\":3 {filler}"}},"jsonrpc":"2.0","id": 5 }}"#),
                Some(5),
            ),
            (format!(r#"{{"jsonrpc":"2.0","id":7,"method":"x","params":"{filler}"}}"#), None),
            (format!(r#"{{"error":"{filler}"}}"#), None),
            (filler.clone(), None),
        ];
        for (line, id) in cases {
            let text = format!("{line}\nshort\n");
            let expected =
                [Line::TooLong(id.map(RequestId::Number)), Line::Whole(b"short".to_vec())];
            assert_eq!(all(&text, 50).await, expected, "{line}");
        }
    }

    #[tokio::test]
    async fn a_line_without_an_end_is_given_up() {
        let endless = tokio::io::repeat(b'x');
        let mut lines = Lines::new(endless, 1000);
        assert!(lines.next().await.is_err());
    }
}
