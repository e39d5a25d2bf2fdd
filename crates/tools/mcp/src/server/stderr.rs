//! Standard error of a server: logged at a limited rate. The last line is kept to report why the
//! server exited.

use std::sync::{Arc, Mutex, PoisonError};

use antiphon_core::visible;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::config::ServerName;
use crate::connection::rate_limiter::RateLimiter;

/// Bytes a server may write per second. A faster server waits.
const BYTES_PER_SECOND_MAX: u32 = 1024 * 1024;

/// Lines logged per second; further lines are dropped.
const LINES_PER_SECOND_MAX: u32 = 20;

/// Longest line that is logged, in characters.
const LINE_CHARS_MAX: usize = 500;

/// Bytes per read.
const CHUNK_BYTES: usize = 16 * 1024;

/// The last line that was not blank.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastLine(Arc<Mutex<String>>);

impl LastLine {
    /// The line, if there is one.
    pub(crate) fn get(&self) -> Option<String> {
        let line = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        (!line.is_empty()).then_some(line)
    }

    fn set(&self, line: &str) {
        line.clone_into(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Reads to the end of the stream.
pub(crate) async fn drain(
    mut stderr: impl AsyncRead + Unpin,
    server: ServerName,
    last_line: LastLine,
) {
    let mut bytes = RateLimiter::new(BYTES_PER_SECOND_MAX, BYTES_PER_SECOND_MAX);
    let mut lines = RateLimiter::new(LINES_PER_SECOND_MAX, LINES_PER_SECOND_MAX);
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
            log_line(&line, &server, &last_line, &mut lines);
            line.clear();
        }
        bytes.acquire(u32::try_from(read).unwrap_or(u32::MAX)).await;
    }
    log_line(&line, &server, &last_line, &mut lines);
}

fn log_line(
    line: &[u8],
    server: &ServerName,
    last_line: &LastLine,
    rate_limiter: &mut RateLimiter,
) {
    let text = visible(String::from_utf8_lossy(line).trim());
    if text.is_empty() {
        return;
    }
    last_line.set(&text);
    if rate_limiter.take(1).is_ok() {
        tracing::debug!(mcp.server = %server, "the server says: {text}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_line_is_kept_and_none_is_too_long() {
        let text = format!("first\n{}\n\n  \nlast words\n\n", "x".repeat(10_000));
        let last_line = LastLine::default();
        drain(text.as_bytes(), "s".parse().unwrap(), last_line.clone()).await;
        assert_eq!(last_line.get().as_deref(), Some("last words"));
    }
}
