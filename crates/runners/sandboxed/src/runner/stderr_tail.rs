//! The standard error of a worker: logged up to a limit, its end kept to explain a crash. Every
//! process inside can write there, so it is only used as text.

use std::sync::{Arc, Mutex, PoisonError};

use antiphon_core::TaskId;
use tokio::io::AsyncReadExt;
use tokio::process::ChildStderr;

/// Bytes of one worker that are logged. The rest is read and dropped.
const LOGGED_BYTES_MAX: usize = 64 * 1024;

/// Bytes of the end that are kept.
const KEPT_BYTES_MAX: usize = 2048;

/// The message of Rust programs that run out of memory.
const NO_MEMORY: &str = "memory allocation of ";

/// The end of the standard error.
#[derive(Debug, Clone, Default)]
pub(super) struct StderrTail(Arc<Mutex<Vec<u8>>>);

impl StderrTail {
    /// Reads to the end.
    pub(super) async fn listen(self, task_id: TaskId, mut stderr: ChildStderr) {
        let mut logged = 0;
        let mut buffer = vec![0; 4096];
        while let Ok(read) = stderr.read(&mut buffer).await {
            let bytes = buffer.get(..read).unwrap_or_default();
            if bytes.is_empty() {
                return;
            }
            if logged < LOGGED_BYTES_MAX {
                let text = String::from_utf8_lossy(bytes);
                tracing::debug!(task.id = %task_id, stderr = %text.trim_end(), "a worker wrote to stderr");
                logged += read;
            }
            self.keep(bytes);
        }
    }

    fn keep(&self, bytes: &[u8]) {
        let mut tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend_from_slice(bytes);
        let surplus = tail.len().saturating_sub(KEPT_BYTES_MAX);
        tail.drain(..surplus);
    }

    /// Whether the text reports a lack of memory.
    pub(super) fn lacks_memory(&self) -> bool {
        self.text().contains(NO_MEMORY)
    }

    /// The last line, for an error message.
    pub(super) fn line(&self) -> String {
        let text = self.text();
        let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let line: String = line.chars().filter(|char| !char.is_control()).take(200).collect();
        if line.is_empty() { line } else { format!(": {line}") }
    }

    fn text(&self) -> String {
        let tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&tail).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_is_kept() {
        let words = StderrTail::default();
        words.keep(&vec![b'x'; 10 * KEPT_BYTES_MAX]);
        words.keep(b"\nmemory allocation of 7 bytes failed\n\n");
        assert!(words.lacks_memory());
        assert_eq!(words.line(), ": memory allocation of 7 bytes failed");
        assert_eq!(words.text().len(), KEPT_BYTES_MAX);
    }
}
