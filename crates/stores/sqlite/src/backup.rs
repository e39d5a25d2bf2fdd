//! A backup: a copy of a journal in one file, made while somebody works on it or at rest.
//!
//! It holds everything that was appended before it began, and nothing that was half done. It takes
//! its name when it is whole, checked and on the disk; killed before that, nothing has that name, or
//! what had it before.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::journal::{OpenError, SqliteJournal};
use crate::rename::rename_new;
use crate::seal::seal;
use crate::snapshot::{Content, check, copy};
use crate::staging::{Staging, folder_of, sync_folder};

/// What lies beside a journal, and belongs to it.
pub(crate) const LOGS: [&str; 2] = ["-wal", "-journal"];

/// What lies beside a journal, and beside nothing else.
const OF_A_JOURNAL: [&str; 4] = ["-wal", "-shm", "-journal", ".lock"];

/// How far a copy is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// So many pages of all.
    Copying {
        /// Pages that are there.
        done: u64,
        /// All pages.
        total: u64,
    },
    /// Everything is there and is looked at.
    Checking,
}

/// What may become of a file that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replace {
    /// It stays, and nothing is done.
    Never,
    /// It gives way.
    Always,
}

/// A backup that was made, or one that can be restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    /// Events in it.
    pub events: u64,
    /// Tasks in it.
    pub tasks: u64,
    /// Those of them that have not ended.
    pub unfinished: u64,
    /// How long the file is.
    pub bytes: u64,
    /// Its schema.
    pub schema: u32,
}

impl Backup {
    pub(crate) fn of(content: Content, bytes: u64) -> Self {
        let Content { schema, events, tasks, unfinished } = content;
        Self { events, tasks, unfinished, bytes, schema }
    }
}

/// Why nothing was backed up or restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// Look at the file that it names.
    #[error(transparent)]
    Journal(#[from] OpenError),
    /// Name another file, or let it give way.
    #[error("{} is there", path.display())]
    Exists {
        /// Which file.
        path: PathBuf,
    },
    /// Name another file.
    #[error("{} is not a file", path.display())]
    NotAFile {
        /// What is there.
        path: PathBuf,
    },
    /// Name another file.
    #[error("{} is the journal itself, or a part of it", path.display())]
    Itself {
        /// Which file.
        path: PathBuf,
    },
    /// Name another file.
    #[error("{} belongs to a journal, as {} says: name another file", path.display(), beside.display())]
    OfAJournal {
        /// Which file.
        path: PathBuf,
        /// What lies beside it.
        beside: PathBuf,
    },
    /// Move the journal away, and restore where none is.
    #[error(
        "the file system of {} cannot exchange two files in one step: move that journal and what lies \
         beside it away, and restore without it",
        path.display()
    )]
    NoExchange {
        /// Which journal.
        path: PathBuf,
    },
    /// Try again when they are done.
    #[error("{} is being read by another process", path.display())]
    InUse {
        /// Which journal.
        path: PathBuf,
    },
    /// Look at the folder, its permissions and the disk.
    #[error("cannot write {}: {reason}", path.display())]
    Unwritable {
        /// Which file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

impl SqliteJournal {
    /// Copies the journal at `journal` to the file `target`, also while another process owns it.
    /// Blocks for as long as that takes; whoever writes does not wait for it.
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
        let staging = Staging::beside(target).map_err(unwritable)?;
        let staged = staging.file("journal.db").map_err(unwritable)?;
        copy(journal, &staged, progress)?;
        progress(Progress::Checking);
        let content = check(&staged, journal)?;
        let bytes = seal(&staged).map_err(unwritable)?;
        // Somebody may have put something there meanwhile.
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

/// The journal's own file, or one beside it that has to do with it.
pub(crate) fn with_end(journal: &Path, end: &str) -> PathBuf {
    let mut name = journal.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// What is there is a file that may give way, and no part of the journal or of another one.
fn check_target(journal: &Path, target: &Path, replace: Replace) -> Result<(), BackupError> {
    let path = target.to_owned();
    let beside = OF_A_JOURNAL.map(|end| with_end(journal, end));
    if is_same(journal, target) || beside.iter().any(|own| is_same(own, target)) {
        return Err(BackupError::Itself { path });
    }
    match (fs::symlink_metadata(target), replace) {
        (Err(error), _) if error.kind() == io::ErrorKind::NotFound => {}
        (Err(error), _) => return Err(unwritable(target, &error)),
        (Ok(about), _) if !about.is_file() => return Err(BackupError::NotAFile { path }),
        (Ok(_), Replace::Never) => return Err(BackupError::Exists { path }),
        (Ok(_), Replace::Always) => {}
    }
    // A log would be read as one of the copy, and whoever has the lock would write on into nowhere.
    let beside = OF_A_JOURNAL.map(|end| with_end(target, end));
    match beside.into_iter().find(|beside| fs::symlink_metadata(beside).is_ok()) {
        Some(beside) => Err(BackupError::OfAJournal { path, beside }),
        None => Ok(()),
    }
}

/// Whether two names are of one file, or would be.
pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    let id = |path: &Path| fs::metadata(path).map(|about| (about.dev(), about.ino()));
    if let (Ok(one), Ok(other)) = (id(one), id(other)) {
        return one == other;
    }
    let folder = |path: &Path| id(folder_of(path)).ok();
    one.file_name() == other.file_name() && folder(one).is_some() && folder(one) == folder(other)
}
