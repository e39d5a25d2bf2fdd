//! Saves what can be read of a damaged journal into a new one, which takes its place. The damaged files
//! are kept beside it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use antiphon_core::TaskId;
use chrono::{DateTime, Utc};
use rusqlite::OpenFlags;
use rusqlite::config::DbConfig;

use crate::backup::rename::{exchange, rename_new};
use crate::backup::staging_folder::{StagingFolder, folder_of, sync_folder};
use crate::backup::{BackupError, LOGS, unwritable, with_suffix};
use crate::file::create::create;
use crate::file::owner::Owner;
use crate::index::event_copy::{EventCopy, Origin};
use crate::journal::{SqliteJournal, connect, open_error};
use crate::maintenance::MaintenanceStep;

/// What was saved of a damaged journal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Repaired {
    /// Number of saved events.
    pub events: u64,
    /// Number of saved tasks.
    pub tasks: u64,
    /// Number of positions whose event could not be read, or belongs to a task that could not.
    pub events_lost: u64,
    /// Tasks that are not complete; those that had not ended are failed now.
    pub tasks_cut: Vec<TaskId>,
    /// Where the damaged file is.
    pub before: PathBuf,
}

impl SqliteJournal {
    /// Replaces the journal at `path` by a new one with everything that can be read of it. `now` is
    /// the time of the ends that are recorded and part of the damaged file's new name. Blocks.
    pub fn repair(
        path: &Path,
        now: DateTime<Utc>,
        step: &mut dyn FnMut(MaintenanceStep),
    ) -> Result<Repaired, BackupError> {
        let in_folder = |error: io::Error| unwritable(path, &error);
        fs::metadata(path).map_err(in_folder)?;
        let _owner = Owner::claim(path)?;
        let staging = StagingFolder::next_to(path).map_err(in_folder)?;
        let staged = staging.path().join("repaired.db");
        create(&staged)?;
        let mut repaired = salvage(path, &staged, now, step)
            .map_err(|error| BackupError::from(open_error(path, &error)))?;
        File::open(&staged).and_then(|file| file.sync_all()).map_err(in_folder)?;
        repaired.before = with_suffix(path, &format!(".damaged-{}", now.format("%Y%m%dT%H%M%SZ")));
        put_in_place(path, &staged, &repaired.before).map_err(in_folder)?;
        Ok(repaired)
    }
}

/// Exchanges the files in one step, where the file system can. The log belongs to the damaged file: it is
/// moved first, so that SQLite never reads it as one of the new file.
fn put_in_place(path: &Path, staged: &Path, before: &Path) -> io::Result<()> {
    for end in LOGS {
        match rename_new(&with_suffix(path, end), &with_suffix(before, end)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    // SQLite makes it again.
    let _ = fs::remove_file(with_suffix(path, "-shm"));
    sync_folder(folder_of(path))?;
    if exchange(path, staged).is_ok() {
        rename_new(staged, before)?;
    } else {
        rename_new(path, before)?;
        rename_new(staged, path)?;
    }
    sync_folder(folder_of(path))
}

fn salvage(
    path: &Path,
    staged: &Path,
    now: DateTime<Utc>,
    step: &mut dyn FnMut(MaintenanceStep),
) -> rusqlite::Result<Repaired> {
    step(MaintenanceStep::begin("opening the damaged journal"));
    let damaged = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // Without it SQLite reads nothing of a truncated file.
    damaged.set_db_config(DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, true)?;
    // The damaged files stay as they are.
    damaged.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    let target = connect(staged, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let copied = EventCopy::new(damaged, Origin::Own).run(target, now, &mut |done, all| {
        step(MaintenanceStep::at("saving events", done, all));
    })?;
    Ok(Repaired {
        events: copied.events,
        tasks: copied.tasks,
        events_lost: copied.events_lost,
        tasks_cut: copied.tasks_cut,
        before: PathBuf::new(),
    })
}
