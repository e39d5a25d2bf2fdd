//! The journal on one SQLite file.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use antiphon_core::port::{
    AgentQuery, Append, AppendFault, Appended, ApprovalQuery, Checkpoint, History, HistoryExtent,
    IdempotencyKey, JournalError, JournalIndex, JournalLog, Page, QueuedQuery, Read, SessionQuery,
    TaskIndex, TaskQuery,
};
use antiphon_core::{
    Approval, DayRange, Event, HistoryRef, InteractionId, LiveAgent, QueuedMessage, Replied,
    SessionSummary, Spending, StatusChanged, TaskId, TaskSummary,
};
use async_trait::async_trait;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::file::create::create;
use crate::file::open_file::OpenFile;
use crate::file::owner::Owner;
use crate::file::quick_check::quick_check;
use crate::file::schema;
use crate::index::checkpoint::CheckpointChange;
use crate::read_only::ReadOnlyJournal;
use crate::reader::Readers;
use crate::writer::Writer;

/// The journal in one SQLite file. Dropping it waits for pending appends.
#[derive(Debug)]
pub struct SqliteJournal {
    /// Closed first: the last connection to close must be the writer, which checkpoints the log.
    readers: Readers,
    writer: Writer,
    /// Released last, after the last write.
    _owner: Owner,
}

/// When an append counts as durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SyncPolicy {
    /// When it is on the disk: it survives a power loss.
    #[default]
    Full,
    /// When the operating system has it: it survives the end of the process, and a power loss up to the
    /// last checkpoint.
    Normal,
}

/// Why a journal could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Stop the other process, or use it.
    #[error("{} is in use by process {pid}: stop it, or use it through its interfaces", path.display())]
    Owned {
        /// Path of the journal.
        path: PathBuf,
        /// Id of the process, or `unknown`.
        pid: String,
    },
    /// Use a later Antiphon.
    #[error(
        "{} was written by a later version (schema {found}, this one knows {known})",
        path.display()
    )]
    Later {
        /// Path of the journal.
        path: PathBuf,
        /// Schema of the file.
        found: u32,
        /// Latest schema this program knows.
        known: u32,
    },
    /// Open it once for writing, which migrates it.
    #[error(
        "{} was written by an earlier version (schema {found}, this one reads {known}): `antiphon \
         run` or `antiphon serve` migrates it",
        path.display()
    )]
    Earlier {
        /// Path of the journal.
        path: PathBuf,
        /// Schema of the file.
        found: u32,
        /// Schema this program reads.
        known: u32,
    },
    /// Restore it from a backup.
    #[error("{} is damaged or not a journal: {reason}", path.display())]
    Damaged {
        /// Path of the journal.
        path: PathBuf,
        /// What SQLite reported.
        reason: String,
    },
    /// Check the folder, its permissions and the disk.
    #[error("cannot open {}: {reason}", path.display())]
    Unusable {
        /// Path of the journal.
        path: PathBuf,
        /// What the system reported.
        reason: String,
    },
}

impl SqliteJournal {
    /// Opens the journal at `path` for this process alone, and creates it if it does not exist. Blocks
    /// during a migration, and up to one second for an owner that is about to end.
    pub fn open(path: &Path, sync: SyncPolicy) -> Result<Self, OpenError> {
        Self::open_owned(Owner::claim(path)?, path, sync)
    }

    /// The same, or `None` at once when another process owns the journal.
    pub fn try_open(path: &Path, sync: SyncPolicy) -> Result<Option<Self>, OpenError> {
        let owner = Owner::try_claim(path)?;
        owner.map(|owner| Self::open_owned(owner, path, sync)).transpose()
    }

    fn open_owned(owner: Owner, path: &Path, sync: SyncPolicy) -> Result<Self, OpenError> {
        let found = fs::symlink_metadata(path);
        if found.as_ref().is_ok_and(|about| !about.is_file()) {
            let reason = "it is not a file".to_owned();
            return Err(OpenError::Unusable { path: path.to_owned(), reason });
        }
        quick_check(path)?;
        if found.is_err() {
            create(path)?;
        }
        let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
            .map_err(|error| open_error(path, &error))?;
        schema::prepare(&mut connection, path, sync)?;
        let file = opened(&connection, path)?;
        let readers = Readers::of_owner(file.clone());
        let writer = Writer::start(connection, file).map_err(|error| open_error(path, &error))?;
        Ok(Self { writer, readers, _owner: owner })
    }

    /// Opens the journal at `path` for reading, also while another process owns it.
    pub fn open_read_only(path: &Path) -> Result<ReadOnlyJournal, OpenError> {
        ReadOnlyJournal::open(path)
    }

    /// Checks every page of the file. Returns the first problem.
    pub async fn verify(&self) -> Result<(), JournalError> {
        self.readers.verify().await
    }
}

#[async_trait]
impl JournalLog for SqliteJournal {
    async fn append(&self, append: Append) -> Result<Appended, JournalError> {
        self.writer.append(append).await
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

    async fn check_append(&self) -> Result<(), AppendFault> {
        self.writer.check().await
    }
}

#[async_trait]
impl TaskIndex for SqliteJournal {
    async fn tasks(&self, query: TaskQuery) -> Result<Vec<TaskSummary>, JournalError> {
        self.readers.tasks(query).await
    }
}

#[async_trait]
impl JournalIndex for SqliteJournal {
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

    async fn save_checkpoint(&self, checkpoint: Checkpoint) -> Result<(), JournalError> {
        self.writer.change_checkpoint(CheckpointChange::Save(checkpoint)).await
    }

    async fn checkpoint(&self, task_id: &TaskId) -> Result<Option<Checkpoint>, JournalError> {
        self.readers.checkpoint(task_id.clone()).await
    }

    async fn forget_checkpoints(&self) -> Result<(), JournalError> {
        self.writer.change_checkpoint(CheckpointChange::Forget).await
    }
}

pub(crate) fn connect(path: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    // The schema of a file from a clone is untrusted.
    connection.pragma_update(None, "trusted_schema", "OFF")?;
    // Plan a statement once, not for each value.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

/// Opens a file that cannot change: SQLite takes no locks and looks for no log.
pub(crate) fn connect_frozen(path: &Path) -> rusqlite::Result<Connection> {
    let access = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    connect(Path::new(&frozen_uri(path)), access)
}

/// The file as a URI that says that it cannot change.
fn frozen_uri(path: &Path) -> String {
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                uri.push(char::from(*byte));
            }
            // Writing to a String cannot fail.
            _ => drop(write!(uri, "%{byte:02X}")),
        }
    }
    uri + "?immutable=1"
}

/// The files that a connection has open. Its first read opens the log.
fn opened(connection: &Connection, path: &Path) -> Result<OpenFile, OpenError> {
    connection
        .query_row("SELECT count(*) FROM sqlite_schema", (), |_| Ok(()))
        .map_err(|error| open_error(path, &error))?;
    OpenFile::of(path)
        .map_err(|error| OpenError::Unusable { path: path.to_owned(), reason: error.to_string() })
}

pub(crate) fn open_error(path: &Path, error: &rusqlite::Error) -> OpenError {
    let (path, reason) = (path.to_owned(), error.to_string());
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            OpenError::Damaged { path, reason }
        }
        Some(_) | None => OpenError::Unusable { path, reason },
    }
}
