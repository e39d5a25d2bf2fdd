//! Rebuilds the index tables from the events.
//!
//! One task at a time, so that a long journal takes time but no memory. An event that cannot be
//! decoded is skipped: reading it is an error, but its task is still listed.

use antiphon_core::{
    EventBody, OutageWait, Position, Seq, SessionId, SpendingFold, TaskCreated, TaskId, TaskStatus,
    TaskSummary,
};
use chrono::{DateTime, Utc};
use rusqlite::types::Type;
use rusqlite::{Row, Transaction};

use crate::index::spending;
use crate::index::tables::Tables;
use crate::row::column::{json, read_text, read_time};
use crate::row::stored_event::{StoredEvent, event_columns};
use crate::writer::task_head_cache::CachedTask;

/// Fills the tables from the events and the table `earlier`, which is dropped.
pub(crate) fn rebuild(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let mut tasks =
        transaction.prepare("SELECT id, task_id, seq, ended FROM earlier ORDER BY id")?;
    let mut rows = tasks.query(())?;
    while let Some(row) = rows.next()? {
        rebuild_task(transaction, &LegacyTask::read(row)?)?;
    }
    drop(rows);
    drop(tasks);
    transaction.execute_batch("DROP TABLE earlier")
}

/// The row of a task in schema 1.
struct LegacyTask {
    row: i64,
    task_id: TaskId,
    seq: Seq,
    ended: bool,
}

impl LegacyTask {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            row: row.get(0)?,
            task_id: read_text(row, 1)?,
            seq: Seq(row.get(2)?),
            ended: row.get(3)?,
        })
    }

    fn begin(&self, first: Option<&EventBody>, at: DateTime<Utc>) -> rusqlite::Result<CachedTask> {
        Ok(CachedTask::new(self.row, begin(&self.task_id, first, at)?))
    }
}

/// Summary of the task. Its creation may be undecodable.
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

/// Fills the columns of schema 7: the random part of each id, and the waits of tasks that have not ended.
pub(crate) fn fill_short_names_and_waits(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let mut tasks = transaction.prepare("SELECT id, task_id, waiting_for FROM tasks")?;
    let mut rows = tasks.query(())?;
    while let Some(row) = rows.next()? {
        let (id, task_id): (i64, TaskId) = (row.get(0)?, read_text(row, 1)?);
        let waiting_for: Option<String> = row.get(2)?;
        let wait = if waiting_for.as_deref() == Some("model") {
            last_wait(transaction, id)?.map(|wait| json(&wait)).transpose()?
        } else {
            None
        };
        transaction
            .prepare_cached("UPDATE tasks SET random_part = ?2, wait = ?3 WHERE id = ?1")?
            .execute((id, task_id.random_part(), wait))?;
    }
    Ok(())
}

/// The wait that the last status of a task begins.
fn last_wait(transaction: &Transaction<'_>, row: i64) -> rusqlite::Result<Option<OutageWait>> {
    let mut events = transaction.prepare_cached(concat!(
        "SELECT ",
        event_columns!("events"),
        " FROM events WHERE task = ? AND type = 'status_changed' ORDER BY position DESC LIMIT 1"
    ))?;
    let mut rows = events.query([row])?;
    let Some(event) = rows.next()? else { return Ok(None) };
    Ok(match StoredEvent::read(event, 0, Position(0)).map(|stored| stored.body) {
        Ok(EventBody::StatusChanged(change)) => OutageWait::of(&change),
        // What cannot be decoded is shown without its reason.
        Ok(_) | Err(_) => None,
    })
}

/// Rebuilds the spending tables. Reads only tasks with usage, and only their events that matter for
/// spending.
pub(crate) fn rebuild_spending(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.execute_batch("DELETE FROM spending; DELETE FROM raised")?;
    let mut tasks =
        transaction.prepare("SELECT id, task_id FROM tasks WHERE spent IS NOT NULL ORDER BY id")?;
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

fn rebuild_task(transaction: &Transaction<'_>, legacy: &LegacyTask) -> rusqlite::Result<()> {
    let tables = Tables::new(transaction);
    let mut events = transaction.prepare_cached(concat!(
        "SELECT ",
        event_columns!("events"),
        " FROM events WHERE task = ? ORDER BY position"
    ))?;
    let mut rows = events.query([legacy.row])?;
    let mut begun: Option<CachedTask> = None;
    // A later step of the migration rebuilds the spending of all tasks.
    let mut spending = SpendingFold::default();
    while let Some(event) = rows.next()? {
        let at = read_time(event, 2).unwrap_or_default();
        let stored = StoredEvent::read(event, 0, Position(0)).ok();
        if let Some(cached) = &mut begun {
            if let Some(StoredEvent { position, body, .. }) = stored {
                cached.apply(&body, at, &mut spending);
                tables.index(cached, position, &body)?;
            }
            continue;
        }
        let mut cached = legacy.begin(stored.as_ref().map(|stored| &stored.body), at)?;
        // A later step of the migration fills the history.
        tables.create(&mut cached, None)?;
        begun = Some(cached);
    }
    let Some(mut cached) = begun else { return Ok(()) };
    // The seq counts skipped events too.
    cached.summary.seq = legacy.seq;
    if legacy.ended && !cached.summary.status.is_terminal() {
        cached.summary.status = TaskStatus::Failed;
        cached.agent = None;
        tables.end(&cached)?;
    }
    tables.update(&mut cached)
}
