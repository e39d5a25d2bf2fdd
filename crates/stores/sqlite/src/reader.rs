//! The readers, each with its own connection on a blocking thread.
//!
//! | file            | subject                            |
//! |-----------------|------------------------------------|
//! | `page`          | pages of events                    |
//! | `history`       | conversations                      |
//! | `index_queries` | lists of the index                 |
//! | `session_list`  | the list of sessions               |
//! | `task_filter`   | lists of tasks that match a filter |

pub(crate) mod history;
pub(crate) mod index_queries;
pub(crate) mod page;
pub(crate) mod session_list;
pub(crate) mod task_filter;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use antiphon_core::port::{
    AgentQuery, Appended, ApprovalQuery, Checkpoint, History, HistoryExtent, IdempotencyKey,
    JournalError, Page, QueuedQuery, Read, SessionQuery, TaskQuery,
};
use antiphon_core::{
    Approval, DayRange, Event, HistoryRef, InteractionId, LiveAgent, Position, QueuedMessage,
    Replied, SessionSummary, Spending, StatusChanged, TaskId, TaskSummary,
};
use rusqlite::{Connection, OpenFlags};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use crate::fault::fault;
use crate::file::open_file::OpenFile;
use crate::index::checkpoint;
use crate::index::spending;
use crate::journal::{connect, connect_frozen};
use crate::reader::page::page;
use crate::writer::append_transaction::answered;

/// Readers at a time; the next one waits.
const READERS_MAX: usize = 4;

#[derive(Debug)]
pub(crate) struct Readers {
    path: Arc<Path>,
    /// The files of the owner: no other file is read in their place.
    file: Option<Arc<OpenFile>>,
    /// The file cannot change, and is read without locks.
    is_frozen: bool,
    permits: Arc<Semaphore>,
    /// Idle connections.
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Readers {
    pub(crate) fn new(path: &Path) -> Self {
        Self::with_file(path, None)
    }

    /// Readers of a file that cannot change.
    pub(crate) fn frozen(path: &Path) -> Self {
        Self { is_frozen: true, ..Self::with_file(path, None) }
    }

    /// Readers of the process that owns the file.
    pub(crate) fn of_owner(file: OpenFile) -> Self {
        let file = Arc::new(file);
        Self::with_file(file.path(), Some(Arc::clone(&file)))
    }

    fn with_file(path: &Path, file: Option<Arc<OpenFile>>) -> Self {
        Self {
            path: path.into(),
            file,
            is_frozen: false,
            permits: Arc::new(Semaphore::new(READERS_MAX)),
            idle: Arc::default(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) async fn read(&self, read: Read) -> Result<Page, JournalError> {
        self.with(move |connection| page(connection, &read)).await
    }

    pub(crate) async fn first_events(
        &self,
        tasks: Vec<TaskId>,
    ) -> Result<Vec<Event>, JournalError> {
        self.with(move |connection| history::first_events(connection, &tasks)).await
    }

    pub(crate) async fn history(
        &self,
        until: HistoryRef,
        extent: HistoryExtent,
    ) -> Result<History, JournalError> {
        self.with(move |connection| history::history(connection, &until, extent)).await
    }

    pub(crate) async fn last_status(
        &self,
        task_id: TaskId,
    ) -> Result<Option<StatusChanged>, JournalError> {
        self.with(move |connection| history::last_status(connection, &task_id)).await
    }

    pub(crate) async fn checkpoint(
        &self,
        task_id: TaskId,
    ) -> Result<Option<Checkpoint>, JournalError> {
        self.with(move |connection| checkpoint::checkpoint(connection, &task_id)).await
    }

    pub(crate) async fn tasks(&self, query: TaskQuery) -> Result<Vec<TaskSummary>, JournalError> {
        self.with(move |connection| index_queries::tasks(connection, &query)).await
    }

    pub(crate) async fn sessions(
        &self,
        query: SessionQuery,
    ) -> Result<Vec<SessionSummary>, JournalError> {
        self.with(move |connection| session_list::sessions(connection, &query)).await
    }

    pub(crate) async fn approvals(
        &self,
        query: ApprovalQuery,
    ) -> Result<Vec<Approval>, JournalError> {
        self.with(move |connection| index_queries::approvals(connection, &query)).await
    }

    pub(crate) async fn agents(&self, query: AgentQuery) -> Result<Vec<LiveAgent>, JournalError> {
        self.with(move |connection| index_queries::agents(connection, &query)).await
    }

    pub(crate) async fn queued(
        &self,
        query: QueuedQuery,
    ) -> Result<Vec<QueuedMessage>, JournalError> {
        self.with(move |connection| index_queries::queued(connection, &query)).await
    }

    pub(crate) async fn reply(
        &self,
        request: InteractionId,
    ) -> Result<Option<Replied>, JournalError> {
        self.with(move |connection| index_queries::reply(connection, request)).await
    }

    pub(crate) async fn spending(&self, days: DayRange) -> Result<Spending, JournalError> {
        self.with(move |connection| spending::during(connection, days)).await
    }

    pub(crate) async fn answered(
        &self,
        key: IdempotencyKey,
    ) -> Result<Option<Appended>, JournalError> {
        self.with(move |connection| {
            answered(connection, &key).map_err(|error| fault(Position(0), &error))
        })
        .await
    }

    /// Checks every page of the file.
    pub(crate) async fn verify(&self) -> Result<(), JournalError> {
        self.with(|connection| {
            let found: String = connection
                .query_row("PRAGMA integrity_check(1)", (), |row| row.get(0))
                .map_err(|error| fault(Position(0), &error))?;
            match found.as_str() {
                "ok" => Ok(()),
                _ => Err(JournalError::Corrupt { position: Position(0), reason: found }),
            }
        })
        .await
    }

    /// Runs `work` with a connection on a blocking thread.
    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, JournalError> {
        let (path, idle) = (Arc::clone(&self.path), Arc::clone(&self.idle));
        let (file, is_frozen) = (self.file.clone(), self.is_frozen);
        let read = move |permit: OwnedSemaphorePermit| {
            let waiting = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let mut connection = match waiting {
                Some(connection) => connection,
                None => {
                    if let Some(reason) = file.and_then(|file| file.fault()) {
                        return Err(JournalError::Unavailable { reason });
                    }
                    let opened = if is_frozen {
                        connect_frozen(&path)
                    } else {
                        connect(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)
                    };
                    opened.map_err(|error| fault(Position(0), &error))?
                }
            };
            let result = work(&mut connection);
            idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
            // Released here: the caller may be gone, and the connection was in use until now.
            drop(permit);
            result
        };
        let permits = Arc::clone(&self.permits);
        if let Ok(permit) = Arc::clone(&permits).try_acquire_owned() {
            let reading = tokio::task::spawn_blocking(move || read(permit));
            return reading.await.map_err(unavailable)?;
        }
        // In a task of its own: a caller that is not polled must not hold the permit that it waited for.
        let mut waiting = JoinSet::new();
        waiting.spawn(async move {
            let permit = permits.acquire_owned().await.map_err(unavailable)?;
            let reading = tokio::task::spawn_blocking(move || read(permit));
            reading.await.map_err(unavailable)?
        });
        let done = waiting.join_next().await.ok_or_else(|| unavailable("the read was canceled"))?;
        done.map_err(unavailable)?
    }
}

fn unavailable(error: impl std::fmt::Display) -> JournalError {
    JournalError::Unavailable { reason: error.to_string() }
}
