//! The readers, each with its own connection on a blocking thread.
//!
//! | file            | subject                            |
//! |-----------------|------------------------------------|
//! | `page`          | pages of events                    |
//! | `index_queries` | lists of the index                 |
//! | `task_filter`   | lists of tasks that match a filter |

pub(crate) mod index_queries;
pub(crate) mod page;
pub(crate) mod task_filter;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use antiphon_core::port::{
    AgentQuery, Appended, ApprovalQuery, IdempotencyKey, JournalError, Page, QueuedQuery, Read,
    SessionQuery, TaskQuery,
};
use antiphon_core::{
    Approval, DayRange, InteractionId, LiveAgent, Position, QueuedMessage, Replied, SessionSummary,
    Spending, TaskSummary,
};
use rusqlite::{Connection, OpenFlags};
use tokio::sync::Semaphore;

use crate::fault::fault;
use crate::index::spending;
use crate::journal::connect;
use crate::reader::page::page;
use crate::writer::append_transaction::answered;

/// Readers at a time; the next one waits.
const READERS_MAX: usize = 4;

#[derive(Debug)]
pub(crate) struct Readers {
    path: Arc<Path>,
    permits: Arc<Semaphore>,
    /// Idle connections.
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Readers {
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.into(),
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

    pub(crate) async fn tasks(&self, query: TaskQuery) -> Result<Vec<TaskSummary>, JournalError> {
        self.with(move |connection| index_queries::tasks(connection, &query)).await
    }

    pub(crate) async fn sessions(
        &self,
        query: SessionQuery,
    ) -> Result<Vec<SessionSummary>, JournalError> {
        self.with(move |connection| index_queries::sessions(connection, &query)).await
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
        let unavailable = |reason: String| JournalError::Unavailable { reason };
        let permit = Arc::clone(&self.permits).acquire_owned();
        let permit = permit.await.map_err(|error| unavailable(error.to_string()))?;
        let (path, idle) = (Arc::clone(&self.path), Arc::clone(&self.idle));
        let read = tokio::task::spawn_blocking(move || {
            let waiting = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let mut connection = match waiting {
                Some(connection) => connection,
                None => connect(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)
                    .map_err(|error| fault(Position(0), &error))?,
            };
            let result = work(&mut connection);
            idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
            // Released here: the caller may be gone, and the connection was in use until now.
            drop(permit);
            result
        });
        read.await.map_err(|error| unavailable(error.to_string()))?
    }
}
