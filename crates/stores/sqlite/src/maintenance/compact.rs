//! Gives unused space back: of removed rows in the file, and of the log.

use std::path::Path;

use rusqlite::Connection;

use crate::journal::{OpenError, SqliteJournal, open_error};
use crate::maintenance::{MaintenanceStep, OwnedFile, bytes_on_disk};

/// What compacting did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compacted {
    /// Size before, in bytes, the log included.
    pub bytes_before: u64,
    /// Size after it.
    pub bytes_after: u64,
}

impl SqliteJournal {
    /// Writes the journal at `path` anew without unused space. Needs about as much free space as the
    /// journal has then. Killed in between, the journal is as it was. Blocks.
    pub fn compact(
        path: &Path,
        step: &mut dyn FnMut(MaintenanceStep),
    ) -> Result<Compacted, OpenError> {
        let file = OwnedFile::open(path)?;
        let bytes_before = bytes_on_disk(path);
        compact(&file.connection, step).map_err(|error| open_error(path, &error))?;
        Ok(Compacted { bytes_before, bytes_after: bytes_on_disk(path) })
    }
}

pub(crate) fn compact(
    connection: &Connection,
    step: &mut dyn FnMut(MaintenanceStep),
) -> rusqlite::Result<()> {
    step(MaintenanceStep::begin("writing the journal without unused space"));
    checkpoint(connection)?;
    connection.execute_batch("VACUUM")?;
    checkpoint(connection)
}

/// Writes the log into the file and empties it.
pub(crate) fn checkpoint(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()))
}
