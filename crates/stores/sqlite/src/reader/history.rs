//! First events of tasks, and conversations, from their end to their beginning: one look at the row of each task they go through, and no event is
//! decoded that is not part of the answer.

use antiphon_core::port::{
    HISTORY_TASKS_MAX, History, HistoryCollector, HistoryExtent, JournalError, missing_task,
    too_many_tasks,
};
use antiphon_core::{Event, EventBody, HistoryRef, Position, Seq, StatusChanged, TaskId};
use rusqlite::{Connection, OptionalExtension};

use crate::fault::fault;
use crate::index::history::messages_until;
use crate::row::column::read_text;
use crate::row::stored_event::{StoredEvent, event_columns};

/// A conversation up to an event.
pub(crate) fn history(
    connection: &mut Connection,
    until: &HistoryRef,
    extent: HistoryExtent,
) -> Result<History, JournalError> {
    let broken = |error: rusqlite::Error| fault(Position(0), &error);
    let moment = connection.transaction().map_err(broken)?;
    let row = row_of(&moment, &until.task_id).map_err(broken)?;
    let row = row.ok_or_else(|| missing_task(&until.task_id))?;
    let messages = messages_until(&moment, row, until.seq).map_err(broken)?;
    let mut collector = HistoryCollector::new(messages, extent);
    let mut next = Some((row, until.seq));
    let (mut tasks, mut last) = (0, until.task_id.clone());
    while let Some((row, seq)) = next {
        if tasks == HISTORY_TASKS_MAX {
            return Err(too_many_tasks(until.task_id.clone()));
        }
        tasks += 1;
        let task = ConversationTask::read(&moment, row).map_err(broken)?;
        let task = task.ok_or_else(|| missing_task(&last))?;
        if task.collect(&moment, seq, &mut collector)? {
            break;
        }
        last = task.task_id;
        next = task.before;
    }
    Ok(collector.finish())
}

/// The first events of these tasks.
pub(crate) fn first_events(
    connection: &mut Connection,
    tasks: &[TaskId],
) -> Result<Vec<Event>, JournalError> {
    let broken = |error: rusqlite::Error| fault(Position(0), &error);
    let moment = connection.transaction().map_err(broken)?;
    let mut first = moment
        .prepare_cached(concat!(
            "SELECT ",
            event_columns!("events"),
            " FROM events WHERE task = (SELECT id FROM tasks WHERE task_id = ?)
              ORDER BY position LIMIT 1"
        ))
        .map_err(broken)?;
    let mut events = Vec::with_capacity(tasks.len());
    for task_id in tasks {
        let mut rows = first.query([task_id.as_str()]).map_err(broken)?;
        let Some(row) = rows.next().map_err(broken)? else { continue };
        events.push(StoredEvent::read(row, 0, Position(0))?.of(task_id.clone()));
    }
    Ok(events)
}

/// The last recorded status of a task. It is the last event of a task that has ended.
pub(crate) fn last_status(
    connection: &mut Connection,
    task_id: &TaskId,
) -> Result<Option<StatusChanged>, JournalError> {
    let broken = |error: rusqlite::Error| fault(Position(0), &error);
    let mut events = connection
        .prepare_cached(concat!(
            "SELECT ",
            event_columns!("events"),
            " FROM events WHERE task = (SELECT id FROM tasks WHERE task_id = ?)
              AND type = 'status_changed' ORDER BY position DESC LIMIT 1"
        ))
        .map_err(broken)?;
    let mut rows = events.query([task_id.as_str()]).map_err(broken)?;
    let Some(row) = rows.next().map_err(broken)? else { return Ok(None) };
    let stored = StoredEvent::read(row, 0, Position(0))?;
    let EventBody::StatusChanged(change) = stored.body else { return Ok(None) };
    Ok(Some(change))
}

fn row_of(connection: &Connection, task_id: &TaskId) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT id FROM tasks WHERE task_id = ?")?
        .query_row([task_id.as_str()], |row| row.get(0))
        .optional()
}

/// One task of a conversation.
struct ConversationTask {
    row: i64,
    task_id: TaskId,
    /// Row of the task before it, and the seq of the last event that counts.
    before: Option<(i64, Seq)>,
}

impl ConversationTask {
    fn read(connection: &Connection, row: i64) -> rusqlite::Result<Option<Self>> {
        connection
            .prepare_cached("SELECT task_id, history, history_seq FROM tasks WHERE id = ?")?
            .query_row([row], |found| {
                let (before, seq): (Option<i64>, Option<u64>) = (found.get(1)?, found.get(2)?);
                let before = before.zip(seq.map(Seq));
                Ok(Self { row, task_id: read_text(found, 0)?, before })
            })
            .optional()
    }

    /// Adds the events of this task up to `until`, the last one first. Returns whether no more are needed.
    fn collect(
        &self,
        connection: &Connection,
        until: Seq,
        collector: &mut HistoryCollector,
    ) -> Result<bool, JournalError> {
        let broken = |error: rusqlite::Error| fault(Position(0), &error);
        let mut events = connection
            .prepare_cached(concat!(
                "SELECT ",
                event_columns!("events"),
                " FROM events WHERE task = ? AND seq <= ?
                  AND type IN ('message_appended', 'compacted') ORDER BY position DESC"
            ))
            .map_err(broken)?;
        // The highest seq that SQLite can store.
        let until = until.0.min(i64::MAX.unsigned_abs());
        let mut rows = events.query((self.row, until)).map_err(broken)?;
        while !collector.is_complete() {
            let Some(row) = rows.next().map_err(broken)? else { return Ok(false) };
            collector.add(StoredEvent::read(row, 0, Position(0))?.of(self.task_id.clone()));
        }
        Ok(true)
    }
}
