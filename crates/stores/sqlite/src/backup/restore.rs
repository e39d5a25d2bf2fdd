//! Restores: a backup replaces a journal.
//!
//! The backup is copied next to the journal and checked before the journal changes. Then the two files
//! are exchanged in one step of the file system:
//!
//! | killed                               | result                                                 |
//! |--------------------------------------|--------------------------------------------------------|
//! | before the step                      | the old journal, or none                               |
//! | after the step                       | the restored journal; the old one next to it           |
//!
//! Right after the step, the old journal is still named `.restore-…`, and then
//! `.before-…`.
//!
//! A backup that another user may have made is distrusted before the step: its copy is written anew from its events.
//!
//! A log belongs to the journal it was written for. The old log is checkpointed into the old journal
//! before the step; a log that cannot be, because the old journal is damaged, is moved with it. So
//! SQLite never reads a log of the old journal as one of the new journal.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use antiphon_core::TaskId;
use chrono::{DateTime, Utc};
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::backup::checksum::{Checksum, verify_checksum};
use crate::backup::rename::{can_exchange, exchange, rename_new};
use crate::backup::snapshot::{check, copy, damaged};
use crate::backup::staging_folder::{StagingFolder, folder_of, sync_folder};
use crate::backup::{
    Backup, BackupError, LOGS, Progress, Replace, is_same, unwritable, with_suffix,
};
use crate::file::create::create;
use crate::file::owner::Owner;
use crate::file::schema;
use crate::index::event_copy::{EventCopy, Origin};
use crate::journal::{OpenError, SyncPolicy, connect, open_error};

/// How long to wait for readers of the old journal.
const READERS_WAIT_MAX: Duration = Duration::from_secs(2);

/// A checked backup, ready to replace a journal. It holds the lock of the journal. Dropping it leaves
/// the journal as it was.
#[derive(Debug)]
pub struct Restore {
    journal: PathBuf,
    /// Removed with everything in it.
    staging: StagingFolder,
    staged: PathBuf,
    backup: Backup,
    _owner: Owner,
}

/// The result of a restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// Path of the old journal. `None` when there was none.
    pub before: Option<PathBuf>,
}

impl Restore {
    /// Copies the backup in `file`, checks it, and locks the journal at
    /// `journal`, which need not exist. A plain copy of a journal file is accepted too.
    /// Blocks.
    pub fn prepare(
        file: &Path,
        journal: &Path,
        replace: Replace,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, BackupError> {
        let owner = Owner::claim(journal)?;
        check_target(journal, replace)?;
        if is_same(file, journal) {
            return Err(BackupError::Itself { path: file.to_owned() });
        }
        check_file(file)?;
        let in_folder = |error: io::Error| unwritable(journal, &error);
        let staging = StagingFolder::next_to(journal).map_err(in_folder)?;
        let staged = staging.file("journal.db").map_err(in_folder)?;
        if fs::symlink_metadata(journal).is_ok() {
            let other = staging.file("other").map_err(in_folder)?;
            if !can_exchange(&staged, &other).map_err(in_folder)? {
                return Err(BackupError::NoExchange { path: journal.to_owned() });
            }
        }
        copy(file, &staged, progress)?;
        progress(Progress::Checking);
        let content = check(&staged, file)?;
        let bytes = fs::metadata(&staged).map_err(in_folder)?.len();
        let (journal, backup) = (journal.to_owned(), Backup::of(content, bytes));
        Ok(Self { journal, staging, staged, backup, _owner: owner })
    }

    /// Content of the backup.
    pub fn backup(&self) -> &Backup {
        &self.backup
    }

    /// Makes the copy anew from its events, because another user may have made the file: its index and its
    /// checkpoints are not believed, its idempotency keys are left out, a limit that was raised in it is not raised, and each task that has ended
    /// gets `task_restored` before its end. `file` is the name that these record. Returns the tasks with events
    /// that cannot be read, which have failed now. Blocks.
    pub fn distrust(&mut self, file: &str, now: DateTime<Utc>) -> Result<Vec<TaskId>, BackupError> {
        let name = Path::new(file);
        let fault = |error: rusqlite::Error| BackupError::from(open_error(name, &error));
        let mut source = connect(&self.staged, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(fault)?;
        schema::prepare(&mut source, &self.staged, SyncPolicy::Normal)?;
        let anew = self.staging.path().join("anew.db");
        create(&anew)?;
        let target = connect(&anew, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(fault)?;
        let copy = EventCopy::new(source, Origin::File(file.to_owned()));
        let copied = copy.run(target, now, &mut |_, _| {}).map_err(fault)?;
        self.backup.unfinished = check(&anew, name)?.unfinished;
        self.staged = anew;
        Ok(copied.tasks_cut)
    }

    /// Path of the copy. It can be opened and written to before it replaces the journal.
    pub fn staged(&self) -> &Path {
        &self.staged
    }

    /// Replaces the journal. `at` becomes part of the old journal's new name.
    pub fn put_in_place(self, at: DateTime<Utc>) -> Result<Restored, BackupError> {
        let Self { journal, staged, .. } = &self;
        if LOGS.iter().any(|end| is_filled(&with_suffix(staged, end))) {
            let (path, reason) = (staged.clone(), "it is still open".to_owned());
            return Err(BackupError::Unwritable { path, reason });
        }
        let at = at.format("%Y%m%dT%H%M%S%.3fZ");
        let ready = with_suffix(journal, &format!(".restore-{at}"));
        let before = with_suffix(journal, &format!(".before-{at}"));
        fold(journal)?;
        let in_folder = |error: io::Error| unwritable(journal, &error);
        File::open(staged).and_then(|file| file.sync_all()).map_err(in_folder)?;
        set_logs_aside(journal, &before).map_err(in_folder)?;
        rename_new(staged, &ready).map_err(in_folder)?;
        let there = exchange(journal, &ready).map_err(|error| {
            // The journal is still the old one.
            let _ = rename_new(&ready, staged);
            in_folder(error)
        })?;
        finish(journal, &ready, there.then_some(before)).map_err(in_folder)
    }
}

/// A log that could not be checkpointed stays with its own journal.
fn set_logs_aside(journal: &Path, before: &Path) -> io::Result<()> {
    for end in LOGS {
        let log = with_suffix(journal, end);
        if is_filled(&log) {
            rename_new(&log, &with_suffix(before, end))?;
        }
    }
    remove_logs(journal)?;
    sync_folder(folder_of(journal))
}

/// Gives the old journal its final name.
fn finish(journal: &Path, ready: &Path, before: Option<PathBuf>) -> io::Result<Restored> {
    // A reader of the old journal may have created an empty log.
    remove_logs(journal)?;
    sync_folder(folder_of(journal))?;
    if let Some(before) = &before {
        rename_new(ready, before)?;
        sync_folder(folder_of(journal))?;
    }
    Ok(Restored { before })
}

/// Removes empty logs and files that SQLite creates again.
fn remove_logs(journal: &Path) -> io::Result<()> {
    for end in ["-wal", "-journal", "-shm"] {
        match fs::remove_file(with_suffix(journal, end)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

fn is_filled(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|about| about.len() > 0)
}

/// Checks that there is no journal, or one that may be replaced.
fn check_target(journal: &Path, replace: Replace) -> Result<(), BackupError> {
    let path = journal.to_owned();
    match (fs::symlink_metadata(journal), replace) {
        (Err(error), _) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        (Err(error), _) => Err(unwritable(journal, &error)),
        (Ok(about), _) if !about.is_file() => Err(BackupError::NotAFile { path }),
        (Ok(_), Replace::Never) => Err(BackupError::Exists { path }),
        (Ok(_), Replace::Always) => Ok(()),
    }
}

/// Checks that the backup is a file and unchanged since it was made.
fn check_file(file: &Path) -> Result<(), BackupError> {
    let unusable =
        |error: io::Error| OpenError::Unusable { path: file.to_owned(), reason: error.to_string() };
    if !fs::metadata(file).map_err(unusable)?.is_file() {
        return Err(BackupError::NotAFile { path: file.to_owned() });
    }
    // SQLite opens these too, and would wait for the other end of a named pipe.
    let real = fs::canonicalize(file).map_err(unusable)?;
    let mut logs = ["-wal", "-journal", "-shm"].iter().map(|end| with_suffix(&real, end));
    if let Some(path) = logs.find(|log| fs::symlink_metadata(log).is_ok_and(|log| !log.is_file())) {
        return Err(BackupError::NotAFile { path });
    }
    let bytes = match verify_checksum(file).map_err(unusable)? {
        Checksum::Valid { bytes } | Checksum::Missing { bytes } => bytes,
        Checksum::Wrong => {
            return Err(damaged(file, "it was changed after it was made").into());
        }
    };
    if bytes == 0 {
        return Err(damaged(file, "the file is empty").into());
    }
    // A damaged checksum line looks like extra bytes after the last page.
    match page_bytes(file).map_err(unusable)? {
        Some(page) if bytes % page != 0 => {
            Err(damaged(file, "it is truncated, or has extra bytes at its end").into())
        }
        Some(_) | None => Ok(()),
    }
}

/// Page size, if the file is a database.
fn page_bytes(file: &Path) -> io::Result<Option<u64>> {
    let mut head = [0; 18];
    match File::open(file)?.read_exact(&mut head) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let page = match u16::from_be_bytes([head[16], head[17]]) {
        // The largest size does not fit into the field.
        1 => 0x1_0000,
        bytes => u64::from(bytes),
    };
    Ok((head.starts_with(b"SQLite format 3\0") && page > 0).then_some(page))
}

/// Checkpoints the log into the journal. Leaves a damaged journal as it is.
fn fold(journal: &Path) -> Result<(), BackupError> {
    if !LOGS.iter().any(|end| is_filled(&with_suffix(journal, end))) || !is_filled(journal) {
        return Ok(());
    }
    let folded = connect(journal, OpenFlags::SQLITE_OPEN_READ_WRITE).and_then(|connection| {
        connection.busy_timeout(READERS_WAIT_MAX)?;
        checkpoint(&connection)
    });
    match folded {
        Ok(true) => Ok(()),
        Ok(false) => Err(BackupError::InUse { path: journal.to_owned() }),
        Err(error) => match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => Ok(()),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                Err(BackupError::InUse { path: journal.to_owned() })
            }
            Some(_) | None => {
                let (path, reason) = (journal.to_owned(), error.to_string());
                Err(BackupError::Unwritable { path, reason })
            }
        },
    }
}

/// Whether the whole log was checkpointed: a reader may prevent that.
fn checkpoint(connection: &Connection) -> rusqlite::Result<bool> {
    connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get::<_, i64>(0))
        .map(|busy| busy == 0)
}
