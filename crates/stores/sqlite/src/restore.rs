//! A backup takes the place of a journal.
//!
//! Nothing is touched before the backup was copied beside the journal and looked at. Then they change
//! places in one step of the file system:
//!
//! | killed                               | what is there                                          |
//! |--------------------------------------|--------------------------------------------------------|
//! | before the step                      | the old journal, or none                               |
//! | behind it                            | the restored one; the old one beside it                |
//!
//! Between the step and the next one the old one has another name, `.restore-…` in place of
//! `.before-…`.
//!
//! A log belongs to the journal it was written for. That of the old one is folded into it before the
//! step; what cannot be folded, because the old one is damaged, is set aside with it. So no log of the
//! old journal is ever read as one of the new.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{DateTime, Utc};
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::backup::{Backup, BackupError, LOGS, Progress, Replace, is_same, unwritable, with_end};
use crate::journal::{OpenError, connect};
use crate::owner::Owner;
use crate::rename::{can_exchange, exchange, rename_new};
use crate::seal::{Seal, look};
use crate::snapshot::{check, copy, damaged};
use crate::staging::{Staging, folder_of, sync_folder};

/// How long those who only look at the old journal are waited for.
const READERS_WAIT_MAX: Duration = Duration::from_secs(2);

/// A backup that was looked at and can take the place of a journal. Until then the journal is nobody
/// else's; dropped, it is as it was.
#[derive(Debug)]
pub struct Restore {
    journal: PathBuf,
    /// Removed with everything in it.
    _staging: Staging,
    staged: PathBuf,
    backup: Backup,
    _owner: Owner,
}

/// A backup that took the place of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// Where the journal is that was there before.
    pub before: Option<PathBuf>,
}

impl Restore {
    /// Copies the backup in `file`, looks at it, and keeps everybody away from the journal at
    /// `journal`, which need not be there. A copy of a journal that was made by other means will do.
    /// Blocks.
    pub fn prepare(
        file: &Path,
        journal: &Path,
        replace: Replace,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, BackupError> {
        let owner = Owner::claim(journal)?;
        check_position(journal, replace)?;
        if is_same(file, journal) {
            return Err(BackupError::Itself { path: file.to_owned() });
        }
        check_file(file)?;
        let in_folder = |error: io::Error| unwritable(journal, &error);
        let staging = Staging::beside(journal).map_err(in_folder)?;
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
        Ok(Self { journal, _staging: staging, staged, backup, _owner: owner })
    }

    /// What is in it.
    pub fn backup(&self) -> &Backup {
        &self.backup
    }

    /// The copy. It can be opened and written to before it takes its place.
    pub fn staged(&self) -> &Path {
        &self.staged
    }

    /// Puts it in the place of the journal. `at` is in the name of the one that was there.
    pub fn put_in_place(self, at: DateTime<Utc>) -> Result<Restored, BackupError> {
        let Self { journal, staged, .. } = &self;
        if LOGS.iter().any(|end| is_filled(&with_end(staged, end))) {
            let (path, reason) = (staged.clone(), "it is still open".to_owned());
            return Err(BackupError::Unwritable { path, reason });
        }
        let at = at.format("%Y%m%dT%H%M%S%.3fZ");
        let ready = with_end(journal, &format!(".restore-{at}"));
        let before = with_end(journal, &format!(".before-{at}"));
        fold(journal)?;
        let in_folder = |error: io::Error| unwritable(journal, &error);
        File::open(staged).and_then(|file| file.sync_all()).map_err(in_folder)?;
        set_logs_aside(journal, &before).map_err(in_folder)?;
        rename_new(staged, &ready).map_err(in_folder)?;
        let there = exchange(journal, &ready).map_err(|error| {
            // The journal is the old one, and this a copy that nobody needs.
            let _ = rename_new(&ready, staged);
            in_folder(error)
        })?;
        finish(journal, &ready, there.then_some(before)).map_err(in_folder)
    }
}

/// What is in a log that could not be folded stays with the journal it was written for.
fn set_logs_aside(journal: &Path, before: &Path) -> io::Result<()> {
    for end in LOGS {
        let log = with_end(journal, end);
        if is_filled(&log) {
            rename_new(&log, &with_end(before, end))?;
        }
    }
    remove_logs(journal)?;
    sync_folder(folder_of(journal))
}

/// Gives the journal that was there the name it is kept under.
fn finish(journal: &Path, ready: &Path, before: Option<PathBuf>) -> io::Result<Restored> {
    // Somebody who looked at the old one in between may have begun an empty log.
    remove_logs(journal)?;
    sync_folder(folder_of(journal))?;
    if let Some(before) = &before {
        rename_new(ready, before)?;
        sync_folder(folder_of(journal))?;
    }
    Ok(Restored { before })
}

/// Removes what is empty, or is made again by whoever opens the journal next.
fn remove_logs(journal: &Path) -> io::Result<()> {
    for end in ["-wal", "-journal", "-shm"] {
        match fs::remove_file(with_end(journal, end)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

fn is_filled(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|about| about.len() > 0)
}

/// There is room for a journal, or one that may give way.
fn check_position(journal: &Path, replace: Replace) -> Result<(), BackupError> {
    let path = journal.to_owned();
    match (fs::symlink_metadata(journal), replace) {
        (Err(error), _) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        (Err(error), _) => Err(unwritable(journal, &error)),
        (Ok(about), _) if !about.is_file() => Err(BackupError::NotAFile { path }),
        (Ok(_), Replace::Never) => Err(BackupError::Exists { path }),
        (Ok(_), Replace::Always) => Ok(()),
    }
}

/// It is a file, and as it was when it was made.
fn check_file(file: &Path) -> Result<(), BackupError> {
    let unusable =
        |error: io::Error| OpenError::Unusable { path: file.to_owned(), reason: error.to_string() };
    if !fs::metadata(file).map_err(unusable)?.is_file() {
        return Err(BackupError::NotAFile { path: file.to_owned() });
    }
    let bytes = match look(file).map_err(unusable)? {
        Seal::Whole { bytes } | Seal::None { bytes } => bytes,
        Seal::Broken => {
            return Err(damaged(file, "it was changed since it was made").into());
        }
    };
    if bytes == 0 {
        return Err(damaged(file, "there is nothing in it").into());
    }
    // A seal that is damaged itself is only something that follows the last page.
    match page_bytes(file).map_err(unusable)? {
        Some(page) if bytes % page != 0 => {
            Err(damaged(file, "it is cut off, or something follows its end").into())
        }
        Some(_) | None => Ok(()),
    }
}

/// How long its pages are, if it is a database.
fn page_bytes(file: &Path) -> io::Result<Option<u64>> {
    let mut head = [0; 18];
    match File::open(file)?.read_exact(&mut head) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let page = match u16::from_be_bytes([head[16], head[17]]) {
        // The longest does not fit into the number.
        1 => 0x1_0000,
        bytes => u64::from(bytes),
    };
    Ok((head.starts_with(b"SQLite format 3\0") && page > 0).then_some(page))
}

/// Has the journal hold everything that its log does. One that is damaged stays as it is.
fn fold(journal: &Path) -> Result<(), BackupError> {
    if !LOGS.iter().any(|end| is_filled(&with_end(journal, end))) || !is_filled(journal) {
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

/// Whether everything was folded: somebody who looks at the journal may keep it from being so.
fn checkpoint(connection: &Connection) -> rusqlite::Result<bool> {
    connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get::<_, i64>(0))
        .map(|busy| busy == 0)
}
