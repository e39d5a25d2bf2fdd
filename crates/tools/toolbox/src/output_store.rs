//! Stores results that are too long for a model.
//!
//! The model gets the start, the end and an id; with the id it reads the rest by range. A result
//! belongs to its task: no other task can read it. It stays until a sweep removes it, or until newer
//! results of its task need the space. A task that resumes after a restart still finds it.
//!
//! | case                                | outcome                                                  |
//! |-------------------------------------|----------------------------------------------------------|
//! | it cannot be stored (disk, id)      | the model gets start and end, and a note that says so    |
//! | the results of the task exceed the limit | its oldest results are removed                      |
//! | an id of another task, or a path    | not found                                                |

mod files;
mod read_result;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use antiphon_core::{TaskId, ToolCallId};
use tokio::task::spawn_blocking;

use files::{ResultFiles, StoredResult};
pub use files::{STORED_RESULT_BYTES_MAX, STORED_TASK_BYTES_MAX};
pub(crate) use read_result::ReadResult;

/// How much of the start is shown, in bytes.
const HEAD_BYTES: usize = 8 * 1024;

/// How much of the end is shown, in bytes.
const TAIL_BYTES: usize = 4 * 1024;

/// Stores results that are too long for a model, as private files.
#[derive(Debug)]
pub struct OutputStore {
    files: ResultFiles,
    /// Held while old results are removed and a new one is written.
    writing: Mutex<()>,
}

impl OutputStore {
    /// Stores results in `folder`. Creates it, readable by its owner only, when it does not exist.
    pub fn open(folder: &Path) -> std::io::Result<Self> {
        Ok(Self { files: ResultFiles::open(folder)?, writing: Mutex::new(()) })
    }

    /// Removes results stored longer ago than `older_than`. Returns how many.
    pub async fn sweep(self: &Arc<Self>, older_than: Duration) -> std::io::Result<usize> {
        let outputs = Arc::clone(self);
        spawn_blocking(move || outputs.files.sweep(older_than))
            .await
            .unwrap_or_else(|error| Err(std::io::Error::other(error)))
    }

    /// Removes all results of a task that is gone. Returns whether it had any. Blocks.
    pub fn remove(&self, task_id: &TaskId) -> std::io::Result<bool> {
        self.files.remove(task_id)
    }

    /// Stores `text` and returns the preview that the model gets instead.
    pub(crate) async fn store(
        self: &Arc<Self>,
        task_id: TaskId,
        call_id: ToolCallId,
        text: String,
    ) -> String {
        let outputs = Arc::clone(self);
        let preview = spawn_blocking(move || {
            let _writing = outputs.writing.lock().unwrap_or_else(PoisonError::into_inner);
            let stored = outputs.files.store(&task_id, &call_id, &text);
            preview(&text, stored)
        });
        preview.await.unwrap_or_else(|error| format!("the result was lost: {error}"))
    }

    fn files(&self) -> &ResultFiles {
        &self.files
    }
}

/// The start and the end of a text, with a note about the part left out.
fn preview(text: &str, stored: std::io::Result<StoredResult>) -> String {
    let head = head_of(text);
    let tail = tail_of(&text[head.len()..]);
    let left_out = text.len() - head.len() - tail.len();
    let note = match stored {
        Ok(stored) => stored.to_string(),
        Err(error) => format!(
            "The whole could not be stored ({error}): ask for less, or have it written to a file."
        ),
    };
    format!("{head}\n\n[… {left_out} bytes left out. {note} …]\n\n{tail}")
}

/// As many whole lines as fit, or as much of the first.
fn head_of(text: &str) -> &str {
    let head = &text[..text.floor_char_boundary(HEAD_BYTES)];
    match head.rfind('\n') {
        Some(end) if end > HEAD_BYTES / 2 => &head[..end],
        Some(_) | None => head,
    }
}

/// As many whole lines of the end as fit, or as much of the last.
fn tail_of(text: &str) -> &str {
    let tail = &text[text.ceil_char_boundary(text.len().saturating_sub(TAIL_BYTES))..];
    match tail.find('\n') {
        Some(start) if start < TAIL_BYTES / 2 => &tail[start + 1..],
        Some(_) | None => tail,
    }
}
