//! The writer thread.
//!
//! It takes all queued appends, up to a limit, writes them in one transaction, and answers
//! them once they are durable. When the transaction fails, none of them is written and each gets
//! the error. Appends that are queued when the journal is dropped are still written. Before each
//! transaction it looks whether the file is still the one at its path; when not, it writes nothing more.
//!
//! | file                 | subject                              |
//! |----------------------|--------------------------------------|
//! | `append_transaction` | one transaction                      |
//! | `task_head_cache`    | tasks that have not ended            |
//! | `storage_check`      | whether the file takes another append |

pub(crate) mod append_transaction;
pub(crate) mod storage_check;
pub(crate) mod task_head_cache;

use std::io;
use std::slice;
use std::thread::JoinHandle;
use std::time::Duration;

use antiphon_core::port::{Append, AppendFault, Appended, JournalError};
use antiphon_core::{EventBody, Position};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use crate::fault::{fault, is_unreadable};
use crate::file::open_file::OpenFile;
use crate::index::checkpoint::CheckpointChange;
use crate::index::tail::Tail;
use crate::maintenance::compact::checkpoint;
use crate::writer::append_transaction::AppendTransaction;
use crate::writer::storage_check::StorageCheck;
use crate::writer::task_head_cache::TaskHeadCache;

/// Appends that may be queued; the next caller waits for room.
pub const APPENDS_WAITING_MAX: usize = 4096;

/// Most appends in one transaction.
pub const BATCH_APPENDS_MAX: usize = 1024;

/// Longest append, in bytes of the JSON of its events. A longer one is
/// [`JournalError::Invalid`].
pub const APPEND_BYTES_MAX: usize = 64 * 1024 * 1024;

pub(crate) type Answer = Result<Appended, JournalError>;

#[derive(Debug)]
pub(crate) struct Writer {
    /// `None` while it is being dropped.
    queue: Option<mpsc::Sender<Work>>,
    thread: Option<JoinHandle<()>>,
}

/// What the writer thread is asked for.
enum Work {
    Append(QueuedAppend),
    Check(oneshot::Sender<Result<(), AppendFault>>),
    Checkpoint(QueuedCheckpoint),
}

struct QueuedCheckpoint {
    change: CheckpointChange,
    answer: oneshot::Sender<Result<(), JournalError>>,
}

struct QueuedAppend {
    append: Append,
    /// Serialized by the caller's thread.
    events_json: Vec<SerializedEvent>,
    answer: oneshot::Sender<Answer>,
}

/// The type and JSON of an event.
pub(crate) struct SerializedEvent {
    pub(crate) event_type: &'static str,
    pub(crate) data: String,
}

impl Writer {
    /// `file` is what the connection has open.
    pub(crate) fn start(connection: Connection, file: OpenFile) -> rusqlite::Result<Self> {
        let head =
            connection
                .query_row("SELECT coalesce(max(position), 0) FROM events", (), |row| row.get(0))?;
        let (queue, waiting) = mpsc::channel(APPENDS_WAITING_MAX);
        let io_error = |error: io::Error| rusqlite::Error::ToSqlConversionFailure(error.into());
        let storage = StorageCheck::new(file);
        let (cache, head, tail) =
            (TaskHeadCache::default(), Position(head), Tail::of(&connection)?);
        let thread_state = WriterThread { connection, cache, head, tail, storage };
        let thread = std::thread::Builder::new()
            .name("journal-writer".to_owned())
            .spawn(move || thread_state.work(waiting))
            .map_err(io_error)?;
        Ok(Self { queue: Some(queue), thread: Some(thread) })
    }

    pub(crate) async fn append(&self, append: Append) -> Answer {
        append.check_shape()?;
        let events_json = events_json(&append)?;
        let (answer, answered) = oneshot::channel();
        let queue = self.queue.as_ref().ok_or_else(gone)?;
        let queued = QueuedAppend { append, events_json, answer };
        queue.send(Work::Append(queued)).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }

    pub(crate) async fn change_checkpoint(
        &self,
        change: CheckpointChange,
    ) -> Result<(), JournalError> {
        let (answer, answered) = oneshot::channel();
        let queue = self.queue.as_ref().ok_or_else(gone)?;
        let queued = QueuedCheckpoint { change, answer };
        queue.send(Work::Checkpoint(queued)).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }

    pub(crate) async fn check(&self) -> Result<(), AppendFault> {
        let stopped = || AppendFault::Unavailable { reason: gone().to_string() };
        let (answer, answered) = oneshot::channel();
        let queue = self.queue.as_ref().ok_or_else(stopped)?;
        queue.send(Work::Check(answer)).await.map_err(|_| stopped())?;
        answered.await.map_err(|_| stopped())?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // A writer that panicked has been reported already.
            let _ = thread.join();
        }
    }
}

fn events_json(append: &Append) -> Result<Vec<SerializedEvent>, JournalError> {
    let invalid =
        |reason: String| JournalError::Invalid { task_id: append.task_id.clone(), reason };
    let mut room = APPEND_BYTES_MAX;
    let line = |body: &EventBody| {
        let data = serde_json::to_string(body).map_err(|error| invalid(error.to_string()))?;
        room = room.checked_sub(data.len()).ok_or_else(|| {
            invalid(format!("its events have more than {APPEND_BYTES_MAX} bytes: split it"))
        })?;
        Ok(SerializedEvent { event_type: body.event_type(), data })
    };
    append.events.iter().map(line).collect()
}

fn gone() -> JournalError {
    JournalError::Unavailable {
        reason: "its writer has stopped: open the journal again".to_owned(),
    }
}

/// State of the writer thread.
struct WriterThread {
    connection: Connection,
    cache: TaskHeadCache,
    head: Position,
    tail: Tail,
    storage: StorageCheck,
}

impl WriterThread {
    fn work(mut self, mut waiting: mpsc::Receiver<Work>) {
        let mut queued = Vec::with_capacity(BATCH_APPENDS_MAX);
        let mut batch = Vec::with_capacity(BATCH_APPENDS_MAX);
        while waiting.blocking_recv_many(&mut queued, BATCH_APPENDS_MAX) > 0 {
            let (mut checks, mut checkpoints) = (Vec::new(), Vec::new());
            for work in queued.drain(..) {
                match work {
                    Work::Append(append) => batch.push(append),
                    Work::Check(answer) => checks.push(answer),
                    Work::Checkpoint(change) => checkpoints.push(change),
                }
            }
            if !checks.is_empty() {
                let found = self.storage.check(&mut self.connection);
                for answer in checks {
                    // The caller may have stopped waiting.
                    let _ = answer.send(found.clone());
                }
            }
            if !batch.is_empty() {
                let answers = self.write(&batch);
                for (waiting, answer) in batch.drain(..).zip(answers) {
                    // A caller that stopped waiting finds the append in the journal.
                    let _ = waiting.answer.send(answer);
                }
                self.shorten_tail();
            }
            // After the appends: nothing waits for a checkpoint.
            if !checkpoints.is_empty() {
                let changed = self.change_checkpoints(&checkpoints);
                for waiting in checkpoints {
                    let _ = waiting.answer.send(changed.clone());
                }
            }
        }
        self.close();
    }

    /// Empties the log, and keeps its files: the next start needs no room on the disk to create them. What fails
    /// leaves the log as a kill does.
    fn close(self) {
        // Another process that reads now is not waited for.
        let _ = self.connection.busy_timeout(Duration::ZERO);
        let _ = checkpoint(&self.connection);
        let _ = self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    }

    /// Writes a batch and returns one answer per append.
    fn write(&mut self, batch: &[QueuedAppend]) -> Vec<Answer> {
        if let Some(reason) = self.storage.replaced(&mut self.connection) {
            let refuse = |_| Err(JournalError::Unavailable { reason: reason.clone() });
            return batch.iter().map(refuse).collect();
        }
        match self.try_write(batch) {
            Ok(answers) => {
                self.storage.failed = false;
                answers
            }
            Err(error) => {
                self.storage.failed = true;
                // The cache is ahead of the file.
                self.cache.forget();
                if is_unreadable(&error) && batch.len() > 1 {
                    // The rows of one task cannot be decoded: write the other appends.
                    return batch.iter().flat_map(|one| self.write(slice::from_ref(one))).collect();
                }
                batch.iter().map(|_| Err(fault(self.head, &error))).collect()
            }
        }
    }

    /// After the answers: nothing waits for it. What fails is tried again after the next append.
    fn shorten_tail(&mut self) {
        if let Some(next_row) = self.cache.next_row.filter(|next| self.tail.is_long(*next))
            && self.storage.replaced(&mut self.connection).is_none()
        {
            let _ = self.tail.shorten(&mut self.connection, next_row);
        }
    }

    fn change_checkpoints(&mut self, changes: &[QueuedCheckpoint]) -> Result<(), JournalError> {
        if let Some(reason) = self.storage.replaced(&mut self.connection) {
            return Err(JournalError::Unavailable { reason });
        }
        let mut change = || -> rusqlite::Result<()> {
            let transaction =
                self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for QueuedCheckpoint { change, .. } in changes {
                change.apply(&transaction)?;
                if let CheckpointChange::Save(checkpoint) = change
                    && let Some(cached) = self.cache.get_mut(&checkpoint.task_id)
                {
                    cached.related.checkpoint = true;
                }
            }
            transaction.commit()
        };
        change().map_err(|error| fault(self.head, &error))
    }

    fn try_write(&mut self, batch: &[QueuedAppend]) -> rusqlite::Result<Vec<Answer>> {
        self.cache.make_room(batch.len());
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut appends = AppendTransaction::open(&transaction, &mut self.cache, self.head);
        let answers = batch
            .iter()
            .map(|waiting| appends.append(&waiting.append, &waiting.events_json))
            .collect::<Result<_, _>>()?;
        let head = appends.finish()?;
        transaction.commit()?;
        self.head = head;
        Ok(answers)
    }
}
