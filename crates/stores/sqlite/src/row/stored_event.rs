//! Events as rows.

use antiphon_core::port::JournalError;
use antiphon_core::{EVENT_VERSION, Event, EventBody, EventError, Position, Seq, TaskId};
use chrono::{DateTime, Utc};
use rusqlite::Row;

use crate::fault::fault;
use crate::row::column::read_time;

/// Columns of `events`, in the order that [`StoredEvent::read`] needs.
macro_rules! event_columns {
    ($table:literal) => {
        concat!(
            $table,
            ".position, ",
            $table,
            ".seq, ",
            $table,
            ".at_s, ",
            $table,
            ".at_ns, ",
            $table,
            ".v, ",
            $table,
            ".type, ",
            $table,
            ".data"
        )
    };
}
pub(crate) use event_columns;

/// Number of these columns.
pub(crate) const EVENT_COLUMNS: usize = 7;

/// An event without its task.
pub(crate) struct StoredEvent {
    pub(crate) position: Position,
    pub(crate) seq: Seq,
    pub(crate) at: DateTime<Utc>,
    pub(crate) body: EventBody,
    /// Length of its JSON, in bytes.
    pub(crate) bytes: usize,
}

impl StoredEvent {
    /// Reads the columns from `start` on. `last` is the position before it, for an event too
    /// damaged to have one.
    pub(crate) fn read(row: &Row<'_>, start: usize, last: Position) -> Result<Self, JournalError> {
        let position = Position(row.get(start).map_err(|error| fault(last, &error))?);
        let broken = |error: rusqlite::Error| fault(position, &error);
        let corrupt = |reason: String| JournalError::Corrupt { position, reason };
        let text = |index: usize| {
            let value = row.get_ref(index).map_err(broken)?;
            value.as_str().map_err(|error| corrupt(error.to_string()))
        };
        let version: u32 = row.get(start + 4).map_err(broken)?;
        if version > EVENT_VERSION {
            return Err(corrupt(EventError::UnknownVersion { found: version }.to_string()));
        }
        let data = text(start + 6)?;
        Ok(Self {
            position,
            seq: Seq(row.get(start + 1).map_err(broken)?),
            at: read_time(row, start + 2).map_err(broken)?,
            body: EventBody::parse(text(start + 5)?, data)
                .map_err(|error| corrupt(error.to_string()))?,
            bytes: data.len(),
        })
    }

    /// The event with its task.
    pub(crate) fn of(self, task_id: TaskId) -> Event {
        let Self { position, seq, at, body, bytes: _ } = self;
        Event { position, task_id, seq, at, body }
    }
}
