//! Results that are too long for a model, kept aside.
//!
//! The model gets the beginning, the end and an id; with the id it reads the rest by range. A
//! result belongs to its task: no other task reads it. It is kept until it is swept away, or until
//! its task needs the room: a task that is taken up again after a restart still finds it.
//!
//! | what goes wrong                    | what happens                                             |
//! |------------------------------------|----------------------------------------------------------|
//! | it cannot be kept (disk, id)       | the model gets beginning and end, and is told            |
//! | the task has kept too much         | its oldest results go                                    |
//! | an id of another task, or a path   | not found                                                |

mod read_result;
mod store;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use antiphon_core::{TaskId, ToolCallId};
use tokio::task::spawn_blocking;

pub(crate) use read_result::ReadResult;
pub use store::{ASIDE_RESULT_BYTES_MAX, ASIDE_TASK_BYTES_MAX};
use store::{Kept, Store};

/// How much of the beginning is shown, in bytes.
const HEAD_BYTES: usize = 8 * 1024;

/// How much of the end is shown, in bytes.
const TAIL_BYTES: usize = 4 * 1024;

/// Keeps results.
#[derive(Debug)]
pub struct OutputStore {
    store: Store,
    /// Held while room is made and taken.
    keeping: Mutex<()>,
}

impl OutputStore {
    /// Keeps results in `folder`, which is made, private, if it is not there.
    pub fn open(folder: &Path) -> std::io::Result<Self> {
        Ok(Self { store: Store::open(folder)?, keeping: Mutex::new(()) })
    }

    /// Removes what was kept longer ago than this, and says how much it was.
    pub async fn sweep(self: &Arc<Self>, older_than: Duration) -> std::io::Result<usize> {
        let aside = Arc::clone(self);
        spawn_blocking(move || aside.store.sweep(older_than))
            .await
            .unwrap_or_else(|error| Err(std::io::Error::other(error)))
    }

    /// Keeps `text` and gives what the model gets to see instead.
    pub(crate) async fn keep(
        self: &Arc<Self>,
        task_id: TaskId,
        call_id: ToolCallId,
        text: String,
    ) -> String {
        let aside = Arc::clone(self);
        let keeping = spawn_blocking(move || {
            let _keeping = aside.keeping.lock().unwrap_or_else(PoisonError::into_inner);
            let kept = aside.store.keep(&task_id, &call_id, &text);
            preview(&text, kept)
        });
        keeping.await.unwrap_or_else(|error| format!("the result was lost: {error}"))
    }

    fn store(&self) -> &Store {
        &self.store
    }
}

/// The beginning and the end of a text, with what is said of the rest.
fn preview(text: &str, kept: std::io::Result<Kept>) -> String {
    let head = head_of(text);
    let tail = tail_of(&text[head.len()..]);
    let left_out = text.len() - head.len() - tail.len();
    let note = match kept {
        Ok(kept) => kept.to_string(),
        Err(error) => format!(
            "The whole could not be kept ({error}): ask for less, or have it written to a file."
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
