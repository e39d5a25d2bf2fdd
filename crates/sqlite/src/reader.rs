//! Those who read, each on a connection of its own and on a thread that may block.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use antiphon_core::port::{JournalError, Page, Read, TaskQuery, Which};
use antiphon_core::{Event, EventBody, Position, Seq, TaskId};
use chrono::DateTime;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Row};
use tokio::sync::Semaphore;

use crate::journal::connect;

/// Most events in one page.
pub const PAGE_EVENTS_MAX: usize = 1024;

/// A page ends with the event that takes it over this many bytes.
pub const PAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Most tasks in one list.
const TASKS_MAX: usize = 1_000_000;

/// Readers at a time; the next one waits.
const READERS_MAX: usize = 4;

#[derive(Debug)]
pub(crate) struct Readers {
    path: Arc<Path>,
    places: Arc<Semaphore>,
    /// Connections that nobody uses at the moment.
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Readers {
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.into(),
            places: Arc::new(Semaphore::new(READERS_MAX)),
            idle: Arc::default(),
        }
    }

    pub(crate) async fn read(&self, read: Read) -> Result<Page, JournalError> {
        self.with(move |connection| page(connection, &read)).await
    }

    pub(crate) async fn tasks(&self, query: TaskQuery) -> Result<Vec<TaskId>, JournalError> {
        self.with(move |connection| list(connection, query)).await
    }

    pub(crate) async fn verify(&self) -> Result<(), JournalError> {
        self.with(|connection| {
            let found: String = connection
                .query_row("PRAGMA integrity_check(1)", (), |row| row.get(0))
                .map_err(|error| fault(Position(0), &error))?;
            match found.as_str() {
                "ok" => Ok(()),
                _ => Err(JournalError::Corrupt { position: Position(0), reason: found }),
            }
        })
        .await
    }

    /// Lends a connection to `work`, away from the threads that must not block.
    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, JournalError> {
        let unavailable = |reason: String| JournalError::Unavailable { reason };
        let place = Arc::clone(&self.places).acquire_owned();
        let place = place.await.map_err(|error| unavailable(error.to_string()))?;
        let (path, idle) = (Arc::clone(&self.path), Arc::clone(&self.idle));
        let read = tokio::task::spawn_blocking(move || {
            let waiting = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let mut connection = match waiting {
                Some(connection) => connection,
                None => connect(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)
                    .map_err(|error| fault(Position(0), &error))?,
            };
            let result = work(&mut connection);
            idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
            // Given up here: whoever asked may have gone, the connection was in use till now.
            drop(place);
            result
        });
        read.await.map_err(|error| unavailable(error.to_string()))?
    }
}

fn list(connection: &Connection, query: TaskQuery) -> Result<Vec<TaskId>, JournalError> {
    let fault = |error| fault(Position(0), &error);
    // The rows of tasks are numbered in the order of their creation.
    let statement = match query.which {
        Which::All => "SELECT task_id FROM tasks ORDER BY id DESC LIMIT ?",
        Which::Unfinished => "SELECT task_id FROM tasks WHERE NOT ended ORDER BY id DESC LIMIT ?",
    };
    let limit = query.limit.get().min(TASKS_MAX);
    let mut tasks = connection.prepare_cached(statement).map_err(fault)?;
    let names = tasks.query_map([limit], |row| row.get::<_, String>(0)).map_err(fault)?;
    let parse = |name: rusqlite::Result<String>| {
        TaskId::parse(&name.map_err(fault)?).map_err(|error| JournalError::Corrupt {
            position: Position(0),
            reason: error.to_string(),
        })
    };
    names.map(parse).collect()
}

/// Events and head of one moment.
fn page(connection: &mut Connection, read: &Read) -> Result<Page, JournalError> {
    let fault = |error| fault(read.after, &error);
    let moment = connection.transaction().map_err(fault)?;
    let head = moment
        .prepare_cached("SELECT coalesce(max(position), 0) FROM events")
        .and_then(|mut head| head.query_row((), |row| row.get(0)))
        .map_err(fault)?;
    let limit = read.limit.get().min(PAGE_EVENTS_MAX);
    // SQLite's numbers end there, and so do positions.
    let after = read.after.0.min(i64::MAX.unsigned_abs());
    let events = match &read.task_id {
        None => {
            let mut events = moment
                .prepare_cached(
                    "SELECT position, events.seq, at_s, at_ns, type, data, task_id
                     FROM events JOIN tasks ON tasks.id = events.task
                     WHERE position > ? ORDER BY position LIMIT ?",
                )
                .map_err(fault)?;
            let rows = events.query((after, limit)).map_err(fault)?;
            collect(rows, read.after)?
        }
        Some(task_id) => {
            let row: Option<i64> = moment
                .prepare_cached("SELECT id FROM tasks WHERE task_id = ?")
                .and_then(|mut task| {
                    task.query_row([task_id.as_str()], |row| row.get(0)).optional()
                })
                .map_err(fault)?;
            let mut events = moment
                .prepare_cached(
                    "SELECT position, seq, at_s, at_ns, type, data, ?1
                     FROM events WHERE task = ?2 AND position > ?3 ORDER BY position LIMIT ?4",
                )
                .map_err(fault)?;
            let rows = events.query((task_id.as_str(), row, after, limit)).map_err(fault)?;
            collect(rows, read.after)?
        }
    };
    let next = events.last().map_or(read.after, |event| event.position);
    Ok(Page { events, next, head: Position(head) })
}

fn collect(mut rows: rusqlite::Rows<'_>, after: Position) -> Result<Vec<Event>, JournalError> {
    let (mut events, mut bytes, mut last) = (Vec::new(), 0, after);
    while let Some(row) = rows.next().map_err(|error| fault(last, &error))? {
        let (event, size) = event(row, last)?;
        last = event.position;
        bytes += size;
        events.push(event);
        if bytes > PAGE_BYTES_MAX {
            break;
        }
    }
    Ok(events)
}

/// One event, and how many bytes it took.
fn event(row: &Row<'_>, last: Position) -> Result<(Event, usize), JournalError> {
    let broken = |error: rusqlite::Error| fault(last, &error);
    let position = Position(row.get(0).map_err(broken)?);
    let corrupt = |reason: String| JournalError::Corrupt { position, reason };
    let (seconds, nanos) = (row.get(2).map_err(broken)?, row.get(3).map_err(broken)?);
    let event_type =
        row.get_ref(4).map_err(broken)?.as_str().map_err(|e| corrupt(e.to_string()))?;
    let data = row.get_ref(5).map_err(broken)?.as_str().map_err(|e| corrupt(e.to_string()))?;
    let task_id = row.get_ref(6).map_err(broken)?.as_str().map_err(|e| corrupt(e.to_string()))?;
    let event = Event {
        position,
        task_id: TaskId::parse(task_id).map_err(|error| corrupt(error.to_string()))?,
        seq: Seq(row.get(1).map_err(broken)?),
        at: DateTime::from_timestamp(seconds, nanos)
            .ok_or_else(|| corrupt("no time".to_owned()))?,
        body: EventBody::parse(event_type, data).map_err(|error| corrupt(error.to_string()))?,
    };
    Ok((event, data.len()))
}

/// A fault of the file while reading behind `position`.
fn fault(position: Position, error: &rusqlite::Error) -> JournalError {
    let reason = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            JournalError::Corrupt { position, reason }
        }
        Some(_) | None => JournalError::Unavailable { reason },
    }
}
