//! Creates a journal under another name, and gives it its own when it is complete and on the disk. So
//! a file that is empty or half made is never a new journal.

use std::fs::File;
use std::io;
use std::path::Path;

use rusqlite::OpenFlags;

use crate::backup::rename::rename_new;
use crate::backup::staging_folder::{StagingFolder, folder_of, sync_folder};
use crate::file::schema;
use crate::journal::{OpenError, SyncPolicy, connect, open_error};

/// Creates an empty journal at `path`, where no file is.
pub(crate) fn create(path: &Path) -> Result<(), OpenError> {
    let unusable =
        |error: io::Error| OpenError::Unusable { path: path.to_owned(), reason: error.to_string() };
    let staging = StagingFolder::next_to(path).map_err(unusable)?;
    let staged = staging.file("journal.db").map_err(unusable)?;
    let mut connection = connect(&staged, OpenFlags::SQLITE_OPEN_READ_WRITE)
        .map_err(|error| open_error(path, &error))?;
    schema::prepare(&mut connection, &staged, SyncPolicy::Full)?;
    // Closing it writes the log into the file and removes the log.
    connection.close().map_err(|(_, error)| open_error(path, &error))?;
    File::open(&staged).and_then(|file| file.sync_all()).map_err(unusable)?;
    rename_new(&staged, path).map_err(unusable)?;
    sync_folder(folder_of(path)).map_err(unusable)
}
