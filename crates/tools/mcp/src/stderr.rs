//! What a server writes to its standard error: logged as far as it is reasonable, and the last of it
//! kept to say why the server ended.

use std::sync::{Arc, Mutex, PoisonError};

use antiphon_core::visible;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::config::ServerName;
use crate::pace::Pace;

/// How much a server may write in a second, in bytes. A faster one waits.
const BYTES_PER_SECOND_MAX: u32 = 1024 * 1024;

/// Lines that are logged in a second; the others are dropped.
const LINES_PER_SECOND_MAX: u32 = 20;

/// Longest line that is logged, in characters.
const LINE_CHARS_MAX: usize = 500;

/// How much is read at a time, in bytes.
const CHUNK_BYTES: usize = 16 * 1024;

/// The last line that said something.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastWords(Arc<Mutex<String>>);

impl LastWords {
    /// The line, if there is one.
    pub(crate) fn get(&self) -> Option<String> {
        let line = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        (!line.is_empty()).then_some(line)
    }

    fn set(&self, line: &str) {
        line.clone_into(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Reads until there is nothing more.
pub(crate) async fn drain(
    mut stderr: impl AsyncRead + Unpin,
    server: ServerName,
    last_words: LastWords,
) {
    let mut bytes = Pace::new(BYTES_PER_SECOND_MAX, BYTES_PER_SECOND_MAX);
    let mut lines = Pace::new(LINES_PER_SECOND_MAX, LINES_PER_SECOND_MAX);
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut line = Vec::new();
    while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
        for byte in &chunk[..read] {
            if *byte != b'\n' {
                if line.len() < LINE_CHARS_MAX {
                    line.push(*byte);
                }
                continue;
            }
            told(&line, &server, &last_words, &mut lines);
            line.clear();
        }
        bytes.taken(u32::try_from(read).unwrap_or(u32::MAX)).await;
    }
    told(&line, &server, &last_words, &mut lines);
}

fn told(line: &[u8], server: &ServerName, last_words: &LastWords, pace: &mut Pace) {
    let text = visible(String::from_utf8_lossy(line).trim());
    if text.is_empty() {
        return;
    }
    last_words.set(&text);
    if pace.take(1).is_ok() {
        tracing::debug!(mcp.server = %server, "the server says: {text}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_line_is_kept_and_none_is_too_long() {
        let text = format!("first\n{}\n\n  \nlast words\n\n", "x".repeat(10_000));
        let last_words = LastWords::default();
        drain(text.as_bytes(), "s".parse().unwrap(), last_words.clone()).await;
        assert_eq!(last_words.get().as_deref(), Some("last words"));
    }
}
