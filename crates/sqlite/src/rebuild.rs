//! Makes the tables beside the events anew, from the events.
//!
//! One task at a time, so that a long journal takes time but no memory. An event that cannot be
//! understood is passed over: whoever reads it is told, and its task is in the list all the same.

use antiphon_core::{
    EventBody, Position, Seq, SessionId, TaskCreated, TaskId, TaskStatus, TaskSummary,
};
use chrono::{DateTime, Utc};
use rusqlite::types::Type;
use rusqlite::{Row, Transaction};

use crate::column::{read_text, read_time};
use crate::standing::Standing;
use crate::stored_event::{StoredEvent, event_columns};
use crate::tables::Tables;

/// Fills the tables from the events and the list of `earlier` tasks, which is dropped.
pub(crate) fn rebuild(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let mut tasks =
        transaction.prepare("SELECT id, task_id, seq, ended FROM earlier ORDER BY id")?;
    let mut rows = tasks.query(())?;
    while let Some(row) = rows.next()? {
        rebuild_task(transaction, &Earlier::read(row)?)?;
    }
    drop(rows);
    drop(tasks);
    transaction.execute_batch("DROP TABLE earlier")
}

/// What was known of a task.
struct Earlier {
    row: i64,
    task_id: TaskId,
    seq: Seq,
    ended: bool,
}

impl Earlier {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            row: row.get(0)?,
            task_id: read_text(row, 1)?,
            seq: Seq(row.get(2)?),
            ended: row.get(3)?,
        })
    }

    /// The task, whose creation cannot always be understood.
    fn begin(&self, first: Option<&EventBody>, at: DateTime<Utc>) -> rusqlite::Result<Standing> {
        let summary = if let Some(EventBody::TaskCreated(created)) = first {
            TaskSummary::created(self.task_id.clone(), created, at)
        } else {
            let session_id = SessionId::parse(self.task_id.as_str()).map_err(|error| {
                rusqlite::Error::FromSqlConversionFailure(1, Type::Text, error.into())
            })?;
            TaskSummary::created(self.task_id.clone(), &TaskCreated::new("", session_id), at)
        };
        Ok(Standing::new(self.row, summary))
    }
}

fn rebuild_task(transaction: &Transaction<'_>, earlier: &Earlier) -> rusqlite::Result<()> {
    let tables = Tables::new(transaction);
    let mut events = transaction.prepare_cached(concat!(
        "SELECT ",
        event_columns!("events"),
        " FROM events WHERE task = ? ORDER BY position"
    ))?;
    let mut rows = events.query([earlier.row])?;
    let mut begun: Option<Standing> = None;
    while let Some(event) = rows.next()? {
        let at = read_time(event, 2).unwrap_or_default();
        let stored = StoredEvent::read(event, 0, Position(0)).ok();
        if let Some(standing) = &mut begun {
            if let Some(StoredEvent { position, body, .. }) = stored {
                standing.apply(&body, at);
                tables.note(standing, position, &body)?;
            }
            continue;
        }
        let mut standing = earlier.begin(stored.as_ref().map(|stored| &stored.body), at)?;
        tables.create(&mut standing)?;
        begun = Some(standing);
    }
    let Some(mut standing) = begun else { return Ok(()) };
    // Also right if some of its events were passed over.
    standing.summary.seq = earlier.seq;
    if earlier.ended && !standing.summary.status.is_terminal() {
        standing.summary.status = TaskStatus::Failed;
        tables.end(&standing)?;
    }
    tables.update(&mut standing)
}
