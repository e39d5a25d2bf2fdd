//! Reads lines up to a maximum length. A longer line is read to its end and dropped.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};

/// Longest line, in bytes: a prompt with some images.
pub(crate) const LINE_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Result of reading a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line without its line break.
    Whole(Vec<u8>),
    /// The line was longer than allowed.
    TooLong,
    /// The end of the input. A last line without a line break is a partial message, and is dropped.
    End,
}

/// The next line. Not cancel safe: a partial line would be lost.
pub(crate) async fn next_line(
    reader: &mut (impl AsyncBufRead + Unpin),
    bytes_max: usize,
) -> io::Result<Line> {
    let (mut line, mut too_long) = (Vec::new(), false);
    loop {
        let chunk = reader.fill_buf().await?;
        if chunk.is_empty() {
            return Ok(Line::End);
        }
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let piece = &chunk[..end.unwrap_or(chunk.len())];
        too_long |= line.len() + piece.len() > bytes_max;
        if too_long {
            line = Vec::new();
        } else {
            line.extend_from_slice(piece);
        }
        let used = piece.len() + usize::from(end.is_some());
        reader.consume(used);
        if end.is_some() {
            return Ok(if too_long { Line::TooLong } else { Line::Whole(line) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_that_is_too_long_costs_itself_only() {
        let mut input = "short\nfar too long\nnext\nhalf".as_bytes();
        let mut found = Vec::new();
        for _ in 0..4 {
            found.push(next_line(&mut input, 5).await.unwrap());
        }
        let whole = |text: &str| Line::Whole(text.as_bytes().to_vec());
        assert_eq!(found, [whole("short"), Line::TooLong, whole("next"), Line::End]);
    }
}
