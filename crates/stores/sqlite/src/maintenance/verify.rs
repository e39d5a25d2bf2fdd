//! Reads everything in a journal and says what is wrong.

use std::path::Path;

use antiphon_core::Position;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::backup::snapshot::{Content, look};
use crate::file::header;
use crate::file::owner::Owner;
use crate::file::quick_check::quick_check;
use crate::file::schema::SCHEMA;
use crate::journal::{OpenError, SqliteJournal, connect, open_error};
use crate::maintenance::{MaintenanceStep, bytes_on_disk, unusable};
use crate::row::stored_event::{StoredEvent, event_columns};

/// Most problems that are reported.
const PROBLEMS_MAX: usize = 100;

/// How many events are decoded between two reports of progress.
const STEP_EVENTS: u64 = 1000;

/// What was found in a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Number of events.
    pub events: u64,
    /// Number of tasks.
    pub tasks: u64,
    /// Number of tasks that have not ended.
    pub unfinished: u64,
    /// Number of tasks that were pruned.
    pub pruned: u64,
    /// Size in bytes, the log included.
    pub bytes: u64,
    /// What is wrong; empty for a sound journal.
    pub problems: Vec<String>,
}

impl SqliteJournal {
    /// Checks every page, every event and the index of the journal at `path`, also while another
    /// process owns it. Blocks.
    pub fn verify_file(
        path: &Path,
        step: &mut dyn FnMut(MaintenanceStep),
    ) -> Result<Verified, OpenError> {
        std::fs::metadata(path).map_err(|error| unusable(path, &error))?;
        // Without an owner, the log of a killed process may have to be recovered.
        let (owner, access) = match Owner::claim(path) {
            Ok(owner) => (Some(owner), OpenFlags::SQLITE_OPEN_READ_WRITE),
            Err(OpenError::Owned { .. }) => (None, OpenFlags::SQLITE_OPEN_READ_ONLY),
            Err(error) => return Err(error),
        };
        if owner.is_some() {
            quick_check(path)?;
        }
        let schema = match &owner {
            Some(_) => header::schema_of_own(path, SCHEMA)?,
            None => header::schema_of(path, SCHEMA)?,
        };
        let mut connection = connect(path, access).map_err(|error| open_error(path, &error))?;
        let found = verify(&mut connection, schema, step);
        let (content, pruned, problems) = found.map_err(|error| open_error(path, &error))?;
        let Content { events, tasks, unfinished, .. } = content;
        Ok(Verified { events, tasks, unfinished, pruned, bytes: bytes_on_disk(path), problems })
    }
}

fn verify(
    connection: &mut Connection,
    schema: u32,
    step: &mut dyn FnMut(MaintenanceStep),
) -> rusqlite::Result<(Content, u64, Vec<String>)> {
    // One moment, beside a process that writes.
    let moment = connection.transaction()?;
    step(MaintenanceStep::begin("checking the pages"));
    let mut problems = Vec::new();
    let empty = Content { schema, events: 0, tasks: 0, unfinished: 0 };
    let content = match look(&moment, schema) {
        Ok(Ok(content)) => content,
        Ok(Err(reason)) => {
            problems.push(reason);
            empty
        }
        Err(error) if is_damage(&error) => {
            problems.push(error.to_string());
            empty
        }
        Err(error) => return Err(error),
    };
    if let Err(error) = decode(&moment, content.events, step, &mut problems) {
        if !is_damage(&error) {
            return Err(error);
        }
        problems.push(error.to_string());
    }
    let count = |statement| moment.query_row(statement, (), |row| row.get::<_, u64>(0));
    let pruned =
        if schema < SCHEMA { 0 } else { count("SELECT count(*) FROM pruned").unwrap_or(0) };
    problems.truncate(PROBLEMS_MAX);
    Ok((content, pruned, problems))
}

fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// Decodes every event.
fn decode(
    connection: &Connection,
    total: u64,
    step: &mut dyn FnMut(MaintenanceStep),
    problems: &mut Vec<String>,
) -> rusqlite::Result<()> {
    let mut events = connection.prepare(concat!(
        "SELECT ",
        event_columns!("events"),
        " FROM events ORDER BY position"
    ))?;
    let mut rows = events.query(())?;
    let (mut done, mut last) = (0, Position(0));
    while let Some(row) = rows.next()? {
        match StoredEvent::read(row, 0, last) {
            Ok(stored) => last = stored.position,
            Err(error) if problems.len() < PROBLEMS_MAX => problems.push(error.to_string()),
            Err(_) => {}
        }
        done += 1;
        if done % STEP_EVENTS == 0 {
            step(MaintenanceStep::at("reading the events", done, total.max(done)));
        }
    }
    Ok(())
}
