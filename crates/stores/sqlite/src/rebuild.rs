//! Makes the tables beside the events anew, from the events.
//!
//! One task at a time, so that a long journal takes time but no memory. An event that cannot be
//! understood is passed over: whoever reads it is told, and its task is in the list all the same.

use antiphon_core::{
    EventBody, Position, Seq, SessionId, SpendingFold, TaskCreated, TaskId, TaskStatus, TaskSummary,
};
use chrono::{DateTime, Utc};
use rusqlite::types::Type;
use rusqlite::{Row, Transaction};

use crate::column::{read_text, read_time};
use crate::spending;
use crate::standing::TaskHeadCache;
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

    fn begin(
        &self,
        first: Option<&EventBody>,
        at: DateTime<Utc>,
    ) -> rusqlite::Result<TaskHeadCache> {
        Ok(TaskHeadCache::new(self.row, begin(&self.task_id, first, at)?))
    }
}

/// The task, whose creation cannot always be understood.
fn begin(
    task_id: &TaskId,
    first: Option<&EventBody>,
    at: DateTime<Utc>,
) -> rusqlite::Result<TaskSummary> {
    if let Some(EventBody::TaskCreated(created)) = first {
        return Ok(TaskSummary::created(task_id.clone(), created, at));
    }
    let session_id = SessionId::parse(task_id.as_str())
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(1, Type::Text, error.into()))?;
    Ok(TaskSummary::created(task_id.clone(), &TaskCreated::new("", session_id), at))
}

/// Adds up anew what was spent. Only tasks that have spent something are looked at, and only those
/// of their events that say who spent what.
pub(crate) fn rebuild_spending(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.execute_batch("DELETE FROM spending; DELETE FROM raised")?;
    let mut tasks = transaction.prepare(
        "SELECT id, task_id FROM tasks WHERE id IN (SELECT task FROM usage) ORDER BY id",
    )?;
    let mut rows = tasks.query(())?;
    while let Some(row) = rows.next()? {
        let fold = spending_of(transaction, row.get(0)?, &read_text(row, 1)?)?;
        spending::add(transaction, &{ fold }.take())?;
    }
    Ok(())
}

fn spending_of(
    transaction: &Transaction<'_>,
    row: i64,
    task_id: &TaskId,
) -> rusqlite::Result<SpendingFold> {
    let mut events = transaction.prepare_cached(concat!(
        "SELECT ",
        event_columns!("events"),
        " FROM events WHERE task = ?
          AND type IN ('task_created', 'handed_over', 'usage_recorded') ORDER BY position"
    ))?;
    let mut rows = events.query([row])?;
    let (mut fold, mut begun) = (SpendingFold::default(), None);
    while let Some(event) = rows.next()? {
        let at = read_time(event, 2).unwrap_or_default();
        let body = StoredEvent::read(event, 0, Position(0)).ok().map(|stored| stored.body);
        if begun.is_none() {
            begun = Some(begin(task_id, body.as_ref(), at)?);
        }
        if let (Some(task), Some(body)) = (&mut begun, &body) {
            task.apply(body, at);
            fold.apply(task, body, at);
        }
    }
    Ok(fold)
}

fn rebuild_task(transaction: &Transaction<'_>, earlier: &Earlier) -> rusqlite::Result<()> {
    let tables = Tables::new(transaction);
    let mut events = transaction.prepare_cached(concat!(
        "SELECT ",
        event_columns!("events"),
        " FROM events WHERE task = ? ORDER BY position"
    ))?;
    let mut rows = events.query([earlier.row])?;
    let mut begun: Option<TaskHeadCache> = None;
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
