//! The tables, and the migrations of older files.

use std::path::Path;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::file::header::{self, APPLICATION_ID};
use crate::index::history;
use crate::index::rebuild::{fill_short_names_and_waits, rebuild, rebuild_spending};
use crate::index::tail::index_all;
use crate::journal::{OpenError, SyncPolicy, open_error};

/// The latest schema.
pub(crate) const SCHEMA: u32 = 10;

/// Prepared statements that are cached; about half as many exist.
const STATEMENTS_MAX: usize = 64;

/// Migrations from each schema to the next. `user_version` is the schema of a file.
const STEPS: [Step; SCHEMA as usize] = [
    Step { tables: include_str!("../../migrations/001.sql"), then: |_| Ok(()) },
    Step {
        tables: include_str!("../../migrations/002.sql"),
        then: |transaction| {
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            rebuild(transaction)
        },
    },
    Step { tables: include_str!("../../migrations/003.sql"), then: |_| Ok(()) },
    Step { tables: include_str!("../../migrations/004.sql"), then: |_| Ok(()) },
    Step { tables: include_str!("../../migrations/005.sql"), then: rebuild_spending },
    Step { tables: include_str!("../../migrations/006.sql"), then: |_| Ok(()) },
    Step { tables: include_str!("../../migrations/007.sql"), then: fill_short_names_and_waits },
    Step { tables: include_str!("../../migrations/008.sql"), then: history::fill },
    Step { tables: include_str!("../../migrations/009.sql"), then: index_all },
    Step { tables: include_str!("../../migrations/010.sql"), then: |_| Ok(()) },
];

struct Step {
    tables: &'static str,
    /// The part that SQL cannot express.
    then: fn(&Transaction<'_>) -> rusqlite::Result<()>,
}

/// Prepares the writer's connection, and runs the migrations that the file needs.
pub(crate) fn prepare(
    connection: &mut Connection,
    path: &Path,
    sync: SyncPolicy,
) -> Result<(), OpenError> {
    let found = header::schema_of_own(path, SCHEMA)?;
    let fault = |error: rusqlite::Error| open_error(path, &error);
    // Nothing here needs to be durable before the first append, which syncs it too.
    connection.pragma_update(None, "synchronous", "NORMAL").map_err(fault)?;
    log_ahead(connection, path)?;
    // A table with references to it can only be recreated without foreign keys.
    connection.pragma_update(None, "foreign_keys", "OFF").map_err(fault)?;
    step_up(connection, found).map_err(fault)?;
    set_up(connection, sync).map_err(fault)
}

/// Without it, readers and the writer would block each other: refuse.
fn log_ahead(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let mode: String = connection
        .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))
        .map_err(|error| open_error(path, &error))?;
    if mode == "wal" {
        return Ok(());
    }
    Err(OpenError::Unusable {
        path: path.to_owned(),
        reason: format!(
            "SQLite cannot use a write-ahead log there, only `{mode}`: put the journal on a local \
             disk, not on a network file system"
        ),
    })
}

fn set_up(connection: &Connection, sync: SyncPolicy) -> rusqlite::Result<()> {
    let sync = match sync {
        SyncPolicy::Full => "FULL",
        SyncPolicy::Normal => "NORMAL",
    };
    connection.pragma_update(None, "synchronous", sync)?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    Ok(())
}

/// Runs the migrations from schema `found` on, all or none.
fn step_up(connection: &mut Connection, found: u32) -> rusqlite::Result<()> {
    if found == SCHEMA {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let steps = &STEPS[found as usize..];
    for Step { tables, .. } in steps {
        transaction.execute_batch(tables)?;
    }
    // These write rows of the latest tables.
    for Step { then, .. } in steps {
        then(&transaction)?;
    }
    transaction.pragma_update(None, "user_version", SCHEMA)?;
    transaction.commit()
}

/// The tables in a database in memory.
#[cfg(test)]
pub(crate) fn in_memory() -> rusqlite::Result<Connection> {
    blank(SCHEMA)
}

/// The empty tables of one schema, in a database in memory.
pub(crate) fn blank(schema: u32) -> rusqlite::Result<Connection> {
    let mut connection = Connection::open_in_memory()?;
    connection.pragma_update(None, "foreign_keys", "OFF")?;
    let transaction = connection.transaction()?;
    for Step { tables, .. } in STEPS.iter().take(schema as usize) {
        transaction.execute_batch(tables)?;
    }
    // A migration of rows ends with this; here are none.
    transaction.execute_batch("DROP TABLE IF EXISTS earlier")?;
    transaction.commit()?;
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_have_a_log_of_its_own_is_not_usable() {
        // A database in memory cannot have one either.
        let connection = Connection::open_in_memory().unwrap();
        let error = log_ahead(&connection, Path::new("journal.db")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot open journal.db: SQLite cannot use a write-ahead log there, only `memory`: put \
             the journal on a local disk, not on a network file system"
        );
    }
}
