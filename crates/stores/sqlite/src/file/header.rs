//! The header of a file: whether it is a journal, and its schema.
//!
//! | `application_id` | `user_version` | tables            | it is                                |
//! |------------------|----------------|-------------------|--------------------------------------|
//! | 0                | 0              | none              | new                                  |
//! | 0                | 1              | those of schema 1 | a journal without an application id  |
//! | ours             | 1 and more     | any               | a journal                            |
//! | otherwise        |                |                   | a database of another program        |

use std::path::Path;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::journal::{OpenError, connect, connect_frozen, open_error};

/// Marks a SQLite file as a journal: "Antp".
pub const APPLICATION_ID: i32 = 0x416E_7470;

/// The schema of an empty file.
pub(crate) const NEW: u32 = 0;

/// The last schema without [`APPLICATION_ID`].
const UNMARKED: u32 = 1;

/// Schema of the file, at most the latest this program knows. Writes nothing, neither
/// into a journal of a later version nor into a file of another program.
pub(crate) fn schema_of(path: &Path, known: u32) -> Result<u32, OpenError> {
    judge(read(path, OpenFlags::SQLITE_OPEN_READ_ONLY), path, known)
}

/// The same for a file that cannot change.
pub(crate) fn schema_of_frozen(path: &Path, known: u32) -> Result<u32, OpenError> {
    judge(connect_frozen(path).and_then(|connection| schema(&connection)), path, known)
}

/// The same for the owner of the file, who may recover the log of a killed writer.
/// The file cannot be read before that.
pub(crate) fn schema_of_own(path: &Path, known: u32) -> Result<u32, OpenError> {
    let found = match read(path, OpenFlags::SQLITE_OPEN_READ_ONLY) {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::ReadOnly) => {
            read(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
        }
        found => found,
    };
    judge(found, path, known)
}

fn judge(found: rusqlite::Result<Option<u32>>, path: &Path, known: u32) -> Result<u32, OpenError> {
    let path = path.to_owned();
    match found {
        Ok(Some(found)) if found > known => Err(OpenError::Later { path, found, known }),
        Ok(Some(found)) => Ok(found),
        Ok(None) => {
            let reason = "it is a database, but not a journal".to_owned();
            Err(OpenError::Damaged { path, reason })
        }
        Err(error) => Err(open_error(&path, &error)),
    }
}

/// `None` for a database of another program.
fn read(path: &Path, access: OpenFlags) -> rusqlite::Result<Option<u32>> {
    schema(&connect(path, access)?)
}

fn schema(connection: &Connection) -> rusqlite::Result<Option<u32>> {
    let version: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let id: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let ours = match (id, version) {
        (0, NEW) => count(connection, "SELECT count(*) FROM sqlite_schema")? == 0,
        (0, UNMARKED) => {
            let tables = "SELECT count(*) FROM sqlite_schema
                          WHERE type = 'table' AND name IN ('events', 'tasks', 'keys')";
            count(connection, tables)? == 3
        }
        (id, version) => id == APPLICATION_ID && version > NEW,
    };
    Ok(ours.then_some(version))
}

fn count(connection: &Connection, statement: &str) -> rusqlite::Result<u32> {
    connection.query_row(statement, (), |row| row.get(0))
}
