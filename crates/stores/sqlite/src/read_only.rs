//! The journal for readers, also while another process writes.

use std::fs;
use std::path::Path;

use antiphon_core::port::{
    AgentQuery, Append, Appended, ApprovalQuery, Checkpoint, History, HistoryExtent,
    IdempotencyKey, JournalError, JournalIndex, JournalLog, Page, QueuedQuery, Read, SessionQuery,
    TaskIndex, TaskQuery,
};
use antiphon_core::{
    Approval, DayRange, Event, HistoryRef, InteractionId, LiveAgent, QueuedMessage, Replied,
    SessionSummary, Spending, StatusChanged, TaskId, TaskSummary,
};
use async_trait::async_trait;

use crate::backup::staging_folder::folder_of;
use crate::backup::with_suffix;
use crate::file::header::{schema_of, schema_of_frozen};
use crate::file::owner::Owner;
use crate::file::schema::SCHEMA;
use crate::journal::OpenError;
use crate::reader::Readers;

/// A journal for reading only. It needs no lock: the owner
/// goes on writing, and the next read returns the new events.
#[derive(Debug)]
pub struct ReadOnlyJournal {
    readers: Readers,
}

impl ReadOnlyJournal {
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        if let Err(error) = fs::metadata(path) {
            let reason = error.to_string();
            return Err(OpenError::Unusable { path: path.to_owned(), reason });
        }
        let is_frozen = is_frozen(path);
        let found =
            if is_frozen { schema_of_frozen(path, SCHEMA)? } else { schema_of(path, SCHEMA)? };
        if found < SCHEMA {
            return Err(OpenError::Earlier { path: path.to_owned(), found, known: SCHEMA });
        }
        let readers = if is_frozen { Readers::frozen(path) } else { Readers::new(path) };
        Ok(Self { readers })
    }

    /// Checks every page of the file. Returns the first problem.
    pub async fn verify(&self) -> Result<(), JournalError> {
        self.readers.verify().await
    }
}

/// Whether the journal cannot change: its folder is on a read-only file system, and it has no log, or an empty one.
/// SQLite reads other files only beside a file of locks, which it could not create there.
fn is_frozen(path: &Path) -> bool {
    let writes = rustix::fs::access(folder_of(path), rustix::fs::Access::WRITE_OK);
    let log = fs::metadata(with_suffix(path, "-wal"));
    writes == Err(rustix::io::Errno::ROFS) && log.map_or(true, |log| log.len() == 0)
}

#[async_trait]
impl JournalLog for ReadOnlyJournal {
    async fn append(&self, _: Append) -> Result<Appended, JournalError> {
        let path = self.readers.path();
        let reason = match Owner::of(path) {
            Some(pid) => {
                format!("{} is owned by process {pid}: only that process can write", path.display())
            }
            None => format!("{} is open for reading only", path.display()),
        };
        Err(JournalError::Unavailable { reason })
    }

    async fn read(&self, read: Read) -> Result<Page, JournalError> {
        self.readers.read(read).await
    }

    async fn first_events(&self, tasks: Vec<TaskId>) -> Result<Vec<Event>, JournalError> {
        self.readers.first_events(tasks).await
    }

    async fn history(
        &self,
        until: HistoryRef,
        extent: HistoryExtent,
    ) -> Result<History, JournalError> {
        self.readers.history(until, extent).await
    }

    async fn last_status(&self, task_id: &TaskId) -> Result<Option<StatusChanged>, JournalError> {
        self.readers.last_status(task_id.clone()).await
    }

    async fn answered(&self, key: &IdempotencyKey) -> Result<Option<Appended>, JournalError> {
        self.readers.answered(key.clone()).await
    }
}

#[async_trait]
impl TaskIndex for ReadOnlyJournal {
    async fn tasks(&self, query: TaskQuery) -> Result<Vec<TaskSummary>, JournalError> {
        self.readers.tasks(query).await
    }
}

#[async_trait]
impl JournalIndex for ReadOnlyJournal {
    async fn sessions(&self, query: SessionQuery) -> Result<Vec<SessionSummary>, JournalError> {
        self.readers.sessions(query).await
    }

    async fn approvals(&self, query: ApprovalQuery) -> Result<Vec<Approval>, JournalError> {
        self.readers.approvals(query).await
    }

    async fn agents(&self, query: AgentQuery) -> Result<Vec<LiveAgent>, JournalError> {
        self.readers.agents(query).await
    }

    async fn queued(&self, query: QueuedQuery) -> Result<Vec<QueuedMessage>, JournalError> {
        self.readers.queued(query).await
    }

    async fn reply(&self, request: InteractionId) -> Result<Option<Replied>, JournalError> {
        self.readers.reply(request).await
    }

    async fn spending(&self, days: DayRange) -> Result<Spending, JournalError> {
        self.readers.spending(days).await
    }

    async fn checkpoint(&self, task_id: &TaskId) -> Result<Option<Checkpoint>, JournalError> {
        self.readers.checkpoint(task_id.clone()).await
    }
}
