//! A copy of a journal at one moment, while it is in use.
//!
//! Pages are copied in steps, all under one read transaction: later appends are not in
//! the copy and do not restart it. Writers do not wait for it. The log grows until the copy
//! is complete.

use std::path::Path;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use crate::backup::Progress;
use crate::file::header;
use crate::file::schema::{SCHEMA, blank};
use crate::journal::{OpenError, connect, open_error};

/// Pages in one step, of 4 KiB each.
const STEP_PAGES: i32 = 1024;

/// The first schema with pruned tasks.
const PRUNED_SINCE: u32 = 6;

/// Counts of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) schema: u32,
    pub(crate) events: u64,
    pub(crate) tasks: u64,
    pub(crate) unfinished: u64,
}

/// Copies the journal at `from` into the empty file `to`, which has no log afterwards.
pub(crate) fn copy(
    from: &Path,
    to: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), OpenError> {
    let found = header::schema_of(from, SCHEMA)?;
    if found == header::NEW {
        return Err(damaged(from, "the file is empty"));
    }
    let mut source = connect(from, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .map_err(|error| open_error(from, &error))?;
    let mut target =
        connect(to, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(|error| open_error(to, &error))?;
    // Synced once, when it is complete.
    target.pragma_update(None, "synchronous", "OFF").map_err(|error| open_error(to, &error))?;
    copy_pages(&mut source, &mut target, progress).map_err(|error| open_error(from, &error))?;
    // A single file, readable on a read-only file system.
    let alone = target.pragma_update(None, "journal_mode", "DELETE");
    alone.map_err(|error| open_error(to, &error))
}

pub(crate) fn copy_pages(
    source: &mut Connection,
    target: &mut Connection,
    progress: &mut dyn FnMut(Progress),
) -> rusqlite::Result<()> {
    let moment = source.transaction()?;
    // A transaction starts with its first read.
    moment.query_row("SELECT count(*) FROM sqlite_schema", (), |_| Ok(()))?;
    let copy = Backup::new(&moment, target)?;
    loop {
        let step = copy.step(STEP_PAGES)?;
        let pages = copy.progress();
        let count = |pages: i32| u64::try_from(pages).unwrap_or_default();
        let total = count(pages.pagecount);
        progress(Progress::Copying { done: total - count(pages.remaining).min(total), total });
        match step {
            StepResult::Done => return Ok(()),
            // SQLite has waited for the process that recovers the log already.
            StepResult::Busy | StepResult::Locked => {
                return Err(rusqlite::Error::SqliteFailure(
                    rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY),
                    None,
                ));
            }
            // The enum may get more variants.
            StepResult::More | _ => {}
        }
    }
}

/// Checks a copy, which errors call `name`: its pages, its tables, and whether
/// events are missing.
pub(crate) fn check(copy: &Path, name: &Path) -> Result<Content, OpenError> {
    let schema = header::schema_of(copy, SCHEMA).map_err(|error| renamed(error, name))?;
    let connection = connect(copy, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .map_err(|error| open_error(name, &error))?;
    let content = look(&connection, schema).map_err(|error| open_error(name, &error))?;
    content.map_err(|reason| damaged(name, &reason))
}

pub(crate) fn look(
    connection: &Connection,
    schema: u32,
) -> rusqlite::Result<Result<Content, String>> {
    let pages: String = connection.query_row("PRAGMA integrity_check(1)", (), |row| row.get(0))?;
    if pages != "ok" {
        return Ok(Err(pages));
    }
    // Any other object, such as a trigger, could act when the journal is written to.
    if objects(connection)? != objects(&blank(schema)?)? {
        return Ok(Err(format!("it does not have the tables of schema {schema}")));
    }
    let count = |statement: &str| connection.query_row(statement, (), |row| row.get::<_, u64>(0));
    let events = count("SELECT count(*) FROM events")?;
    let (first, last): (u64, u64) = connection.query_row(
        "SELECT coalesce(min(position), 1), coalesce(max(position), 0) FROM events",
        (),
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    // Events of pruned tasks have left their positions behind.
    let pruned = if schema < PRUNED_SINCE {
        0
    } else {
        count("SELECT coalesce(sum(events), 0) FROM pruned")?
    };
    if events + pruned != last || (pruned == 0 && first != 1) {
        return Ok(Err(format!("{events} events have the positions {first} to {last}")));
    }
    let torn = count(
        "SELECT count(*) FROM tasks LEFT JOIN (
             SELECT task, count(*) AS events, min(seq) AS first, max(seq) AS last
             FROM events GROUP BY task
         ) ON task = tasks.id
         WHERE (events, first, last) IS NOT (tasks.seq, 1, tasks.seq)",
    )?;
    let stray = count("SELECT count(*) FROM events WHERE task NOT IN (SELECT id FROM tasks)")?;
    if torn + stray > 0 {
        return Ok(Err(format!("{torn} tasks lack events, {stray} events lack their task")));
    }
    Ok(Ok(Content {
        schema,
        events,
        tasks: count("SELECT count(*) FROM tasks")?,
        unfinished: count("SELECT count(*) FROM tasks WHERE NOT ended")?,
    }))
}

/// The objects of a database, without SQLite's own tables and indexes. A trigger or view with such a name is none of
/// SQLite's: a program wrote it into the schema.
fn objects(connection: &Connection) -> rusqlite::Result<Vec<(String, String)>> {
    let mut objects = connection.prepare(
        "SELECT type, name FROM sqlite_schema
         WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' OR type NOT IN ('table', 'index')
         ORDER BY type, name",
    )?;
    let rows = objects.query_map((), |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

pub(crate) fn damaged(path: &Path, reason: &str) -> OpenError {
    OpenError::Damaged { path: path.to_owned(), reason: reason.to_owned() }
}

/// The same error with the path that the user knows.
fn renamed(error: OpenError, name: &Path) -> OpenError {
    let path = name.to_owned();
    match error {
        OpenError::Owned { pid, .. } => OpenError::Owned { path, pid },
        OpenError::Later { found, known, .. } => OpenError::Later { path, found, known },
        OpenError::Earlier { found, known, .. } => OpenError::Earlier { path, found, known },
        OpenError::Damaged { reason, .. } => OpenError::Damaged { path, reason },
        OpenError::Unusable { reason, .. } => OpenError::Unusable { path, reason },
    }
}
