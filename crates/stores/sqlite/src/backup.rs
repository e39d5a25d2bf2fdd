//! Backups: a copy of a journal in one file, while the journal is in use or not.
//!
//! A backup holds every event that was appended before it began, and no partial append. It gets
//! its name when it is complete, checked and on the disk. Killed before that, the target is as it was.
//!
//! | file             | subject                                      |
//! |------------------|----------------------------------------------|
//! | `snapshot`       | a copy of a journal at one moment            |
//! | `checksum`       | the last line of a backup                    |
//! | `restore`        | a backup replaces a journal                  |
//! | `rescue`         | a copy of a journal whose file is gone       |
//! | `staging_folder` | where a file is made before it gets its name |
//! | `rename`         | renames that never overwrite a file          |

pub(crate) mod checksum;
pub(crate) mod rename;
pub(crate) mod rescue;
pub(crate) mod restore;
pub(crate) mod snapshot;
pub(crate) mod staging_folder;

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::backup::checksum::append_checksum;
use crate::backup::rename::rename_new;
use crate::backup::snapshot::{Content, check, copy};
use crate::backup::staging_folder::{StagingFolder, folder_of, sync_folder};
use crate::journal::{OpenError, SqliteJournal};

/// Suffixes of the log files of a journal.
pub(crate) const LOGS: [&str; 2] = ["-wal", "-journal"];

/// Suffixes of files that exist only next to a journal.
const COMPANIONS: [&str; 4] = ["-wal", "-shm", "-journal", ".lock"];

/// Progress of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Pages are being copied.
    Copying {
        /// Pages copied so far.
        done: u64,
        /// All pages.
        total: u64,
    },
    /// The copy is complete and being checked.
    Checking,
}

/// What to do with an existing target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replace {
    /// Keep it and refuse.
    Never,
    /// Replace it.
    Always,
}

/// A backup that was made, or one that can be restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    /// Number of events.
    pub events: u64,
    /// Number of tasks.
    pub tasks: u64,
    /// Number of tasks that have not ended.
    pub unfinished: u64,
    /// Size of the file, in bytes.
    pub bytes: u64,
    /// Schema version.
    pub schema: u32,
}

impl Backup {
    pub(crate) fn of(content: Content, bytes: u64) -> Self {
        let Content { schema, events, tasks, unfinished } = content;
        Self { events, tasks, unfinished, bytes, schema }
    }
}

/// Why a backup or restore was refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The journal or backup cannot be opened: see the error.
    #[error(transparent)]
    Journal(#[from] OpenError),
    /// The target exists: name another file, or replace it.
    #[error("{} exists already", path.display())]
    Exists {
        /// Path of the target.
        path: PathBuf,
    },
    /// Name another file.
    #[error("{} is not a file", path.display())]
    NotAFile {
        /// Path of the target.
        path: PathBuf,
    },
    /// Name another file.
    #[error("{} is the journal itself, or a part of it", path.display())]
    Itself {
        /// Path of the target.
        path: PathBuf,
    },
    /// Name another file.
    #[error("{} belongs to a journal, because {} exists: name another file", path.display(), companion.display())]
    BelongsToJournal {
        /// Path of the target.
        path: PathBuf,
        /// Path of the journal's log or lock file.
        companion: PathBuf,
    },
    /// Move the journal away, and restore to a path without a journal.
    #[error(
        "the file system of {} cannot exchange two files in one step: move that journal and its log files \
         away, and restore without it",
        path.display()
    )]
    NoExchange {
        /// Path of the journal.
        path: PathBuf,
    },
    /// Try again when the other process has finished.
    #[error("{} is being read by another process", path.display())]
    InUse {
        /// Path of the journal.
        path: PathBuf,
    },
    /// Check the folder, its permissions and the disk.
    #[error("cannot write {}: {reason}", path.display())]
    Unwritable {
        /// Path of the file.
        path: PathBuf,
        /// What the system reported.
        reason: String,
    },
}

impl SqliteJournal {
    /// Copies the journal at `journal` to the file `target`, also while another process owns it.
    /// Blocks until the copy is complete. Writers do not wait for it.
    pub fn back_up(
        journal: &Path,
        target: &Path,
        replace: Replace,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Backup, BackupError> {
        let unwritable = |error: io::Error| unwritable(target, &error);
        check_target(journal, target, replace)?;
        if let Err(error) = fs::metadata(journal) {
            let (path, reason) = (journal.to_owned(), error.to_string());
            return Err(OpenError::Unusable { path, reason }.into());
        }
        let staging = StagingFolder::next_to(target).map_err(unwritable)?;
        let staged = staging.file("journal.db").map_err(unwritable)?;
        copy(journal, &staged, progress)?;
        progress(Progress::Checking);
        let content = check(&staged, journal)?;
        let bytes = append_checksum(&staged).map_err(unwritable)?;
        // Another process may have created the target meanwhile.
        match replace {
            Replace::Never => rename_new(&staged, target).map_err(|error| {
                if error.kind() == io::ErrorKind::AlreadyExists {
                    return BackupError::Exists { path: target.to_owned() };
                }
                unwritable(error)
            })?,
            Replace::Always => fs::rename(&staged, target).map_err(unwritable)?,
        }
        sync_folder(folder_of(target)).map_err(unwritable)?;
        Ok(Backup::of(content, bytes))
    }
}

pub(crate) fn unwritable(path: &Path, error: &io::Error) -> BackupError {
    BackupError::Unwritable { path: path.to_owned(), reason: error.to_string() }
}

/// The path of the journal with a suffix.
pub(crate) fn with_suffix(journal: &Path, end: &str) -> PathBuf {
    let mut name = journal.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// Checks that the target may be replaced, and is not part of this or another journal.
fn check_target(journal: &Path, target: &Path, replace: Replace) -> Result<(), BackupError> {
    let path = target.to_owned();
    let companions = COMPANIONS.map(|end| with_suffix(journal, end));
    if is_same(journal, target) || companions.iter().any(|own| is_same(own, target)) {
        return Err(BackupError::Itself { path });
    }
    match (fs::symlink_metadata(target), replace) {
        (Err(error), _) if error.kind() == io::ErrorKind::NotFound => {}
        (Err(error), _) => return Err(unwritable(target, &error)),
        (Ok(about), _) if !about.is_file() => return Err(BackupError::NotAFile { path }),
        (Ok(_), Replace::Never) => return Err(BackupError::Exists { path }),
        (Ok(_), Replace::Always) => {}
    }
    // SQLite would read an old log as one of the copy, and the lock's owner would write to a deleted file.
    let companions = COMPANIONS.map(|end| with_suffix(target, end));
    match companions.into_iter().find(|companion| fs::symlink_metadata(companion).is_ok()) {
        Some(companion) => Err(BackupError::BelongsToJournal { path, companion }),
        None => Ok(()),
    }
}

/// Whether two paths are, or would be, the same file.
pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    let id = |path: &Path| fs::metadata(path).map(|about| (about.dev(), about.ino()));
    if let (Ok(one), Ok(other)) = (id(one), id(other)) {
        return one == other;
    }
    let folder = |path: &Path| id(folder_of(path)).ok();
    one.file_name() == other.file_name() && folder(one).is_some() && folder(one) == folder(other)
}
