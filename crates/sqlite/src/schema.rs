//! The tables, and how older files become newer ones.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use crate::journal::{OpenError, Sync, open_error};

/// One step from each schema to the next. A file says in `user_version` how many it has taken.
const MIGRATIONS: [&str; 1] = [include_str!("../migrations/001.sql")];

/// How a connection that writes is set up.
pub(crate) fn prepare(connection: &Connection, sync: Sync) -> rusqlite::Result<()> {
    let sync = match sync {
        Sync::Full => "FULL",
        Sync::Normal => "NORMAL",
    };
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", sync)?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(())
}

/// Takes the steps that the file has not taken yet, each whole or not at all.
pub(crate) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), OpenError> {
    let fault = |error: rusqlite::Error| open_error(path, &error);
    let known = u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX);
    let found: u32 =
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(fault)?;
    if found > known {
        return Err(OpenError::Later { path: path.to_owned(), found, known });
    }
    for version in found..known {
        let step = MIGRATIONS[version as usize];
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fault)?;
        transaction.execute_batch(step).map_err(fault)?;
        transaction.pragma_update(None, "user_version", version + 1).map_err(fault)?;
        transaction.commit().map_err(fault)?;
    }
    Ok(())
}
