//! Pages of events, in the order of their positions.

use antiphon_core::port::{JournalError, Page, Read};
use antiphon_core::{Event, Position, TaskId};
use rusqlite::{Connection, OptionalExtension, Rows};

use crate::fault::fault;
use crate::row::column::read_text;
use crate::row::stored_event::{EVENT_COLUMNS, StoredEvent, event_columns};

/// Most events in one page.
pub const PAGE_EVENTS_MAX: usize = 1024;

/// A page ends with the event that exceeds this many bytes.
pub const PAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Events and head at one moment.
pub(crate) fn page(connection: &mut Connection, read: &Read) -> Result<Page, JournalError> {
    let fault = |error| fault(read.after, &error);
    let moment = connection.transaction().map_err(fault)?;
    let head = moment
        .prepare_cached("SELECT coalesce(max(position), 0) FROM events")
        .and_then(|mut head| head.query_row((), |row| row.get(0)))
        .map_err(fault)?;
    let limit = read.limit.get().min(PAGE_EVENTS_MAX);
    // The highest position that SQLite can store.
    let after = read.after.0.min(i64::MAX.unsigned_abs());
    let events = match &read.task_id {
        None => {
            let mut events = moment
                .prepare_cached(concat!(
                    "SELECT ",
                    event_columns!("events"),
                    ", task_id FROM events CROSS JOIN tasks ON tasks.id = events.task
                     WHERE position > ? ORDER BY position LIMIT ?"
                ))
                .map_err(fault)?;
            let rows = events.query((after, limit)).map_err(fault)?;
            collect(rows, read)?
        }
        Some(task_id) => {
            let row: Option<i64> = moment
                .prepare_cached("SELECT id FROM tasks WHERE task_id = ?")
                .and_then(|mut task| {
                    task.query_row([task_id.as_str()], |row| row.get(0)).optional()
                })
                .map_err(fault)?;
            let mut events = moment
                .prepare_cached(concat!(
                    "SELECT ",
                    event_columns!("events"),
                    " FROM events WHERE task = ? AND position > ? ORDER BY position LIMIT ?"
                ))
                .map_err(fault)?;
            let rows = events.query((row, after, limit)).map_err(fault)?;
            collect(rows, read)?
        }
    };
    let next = events.last().map_or(read.after, |event| event.position);
    Ok(Page { events, next, head: Position(head) })
}

fn collect(mut rows: Rows<'_>, read: &Read) -> Result<Vec<Event>, JournalError> {
    let (mut events, mut bytes, mut last) = (Vec::new(), 0, read.after);
    while let Some(row) = rows.next().map_err(|error| fault(last, &error))? {
        let stored = StoredEvent::read(row, 0, last)?;
        last = stored.position;
        bytes += stored.bytes;
        let task_id: TaskId = match &read.task_id {
            Some(task_id) => task_id.clone(),
            None => read_text(row, EVENT_COLUMNS).map_err(|error| fault(last, &error))?,
        };
        events.push(stored.of(task_id));
        if bytes > PAGE_BYTES_MAX {
            break;
        }
    }
    Ok(events)
}
