//! Copies the events of a journal into a new one, whose index is made anew: nothing but events, pruned tasks and
//! idempotency keys is believed. Keys of a file of unknown origin are not: they would answer requests that the user makes
//! later.
//!
//! A task keeps its events up to the first that cannot be read. When it had not ended by then, it ends
//! as failed: what it did after that is unknown, so it must not go on. Positions are counted anew, so a client
//! that follows events starts again.

use std::collections::{HashMap, HashSet};

use antiphon_core::port::{Append, Expected};
use antiphon_core::{EventBody, Position, StatusChanged, TaskId, TaskRestored, TaskStatus};
use chrono::{DateTime, Utc};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use serde_json::json;

use crate::index::tail::index_all;
use crate::maintenance::compact::checkpoint;
use crate::row::column::read_text;
use crate::row::stored_event::{EVENT_COLUMNS, StoredEvent, event_columns};
use crate::writer::SerializedEvent;
use crate::writer::append_transaction::AppendTransaction;
use crate::writer::task_head_cache::TaskHeadCache;

/// Events that one transaction copies.
const BATCH_POSITIONS: u64 = 1000;

/// A row of `spending`.
type SpendingRow = (i64, String, String, String, i64, i64, i64, Option<i64>, Option<i64>);

/// Who wrote the journal that is copied.
#[derive(Debug)]
pub(crate) enum Origin {
    /// This user.
    Own,
    /// Unknown: it is a file with this name. Every task that has ended gets `task_restored` before its end, and
    /// raised spending limits and idempotency keys are left out.
    File(String),
}

/// What was copied.
#[derive(Debug, Default)]
pub(crate) struct Copied {
    pub(crate) events: u64,
    pub(crate) tasks: u64,
    /// Number of positions whose event could not be read, or belongs to a task that could not.
    pub(crate) events_lost: u64,
    /// Tasks that are not complete; those that had not ended are failed now.
    pub(crate) tasks_cut: Vec<TaskId>,
}

/// A copy that is being made.
pub(crate) struct EventCopy {
    source: Connection,
    origin: Origin,
    cache: TaskHeadCache,
    head: Position,
    begun: HashSet<TaskId>,
    cut: HashSet<TaskId>,
    /// New positions of events by old ones: keys point there.
    positions: HashMap<u64, u64>,
    copied: Copied,
}

impl EventCopy {
    pub(crate) fn new(source: Connection, origin: Origin) -> Self {
        Self {
            source,
            origin,
            cache: TaskHeadCache::default(),
            head: Position(0),
            begun: HashSet::new(),
            cut: HashSet::new(),
            positions: HashMap::new(),
            copied: Copied::default(),
        }
    }

    /// Copies everything into an empty journal and closes it. `now` is the time of the ends that are recorded.
    pub(crate) fn run(
        mut self,
        mut target: Connection,
        now: DateTime<Utc>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> rusqlite::Result<Copied> {
        target.pragma_update(None, "foreign_keys", "OFF")?;
        // Synced once, when it is complete.
        target.pragma_update(None, "synchronous", "OFF")?;
        self.copy_pruned(&mut target)?;
        self.copy_events(&mut target, progress)?;
        self.end_cut_tasks(&mut target, now)?;
        match self.origin {
            Origin::Own => self.copy_keys(&mut target)?,
            Origin::File(_) => self.copy_spending(&mut target)?,
        }
        let transaction = target.transaction_with_behavior(TransactionBehavior::Immediate)?;
        index_all(&transaction)?;
        transaction.commit()?;
        checkpoint(&target)?;
        target.close().map_err(|(_, error)| error)?;
        let Self { mut copied, begun, cut, .. } = self;
        copied.tasks = begun.len() as u64;
        copied.tasks_cut = cut.into_iter().collect();
        copied.tasks_cut.sort();
        Ok(copied)
    }

    /// What was spent, pruned tasks included. A limit that was raised in the file is not raised here.
    fn copy_spending(&mut self, target: &mut Connection) -> rusqlite::Result<()> {
        let rows: Vec<SpendingRow> = self
            .source
            .prepare("SELECT * FROM spending")?
            .query_map((), |row| row.try_into())?
            .collect::<Result<_, _>>()?;
        let transaction = target.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch("DELETE FROM spending; DELETE FROM raised")?;
        for row in rows {
            transaction
                .prepare_cached("INSERT INTO spending VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")?
                .execute(row)?;
        }
        transaction.commit()
    }

    /// Pruned tasks, as far as they can be read. Their events left positions behind.
    fn copy_pruned(&mut self, target: &mut Connection) -> rusqlite::Result<()> {
        let transaction = target.transaction()?;
        let rows: Vec<(i64, String, String, i64, i64, u64)> = {
            let read = |statement: &str| -> rusqlite::Result<Vec<_>> {
                let mut pruned = self.source.prepare(statement)?;
                let rows = pruned.query_map((), |row| {
                    Ok((
                        row.get(0)?,
                        row.get(1)?,
                        row.get(2)?,
                        row.get(3)?,
                        row.get(4)?,
                        row.get(5)?,
                    ))
                })?;
                Ok(rows.map_while(Result::ok).collect())
            };
            read("SELECT id, task_id, status, ended_s, pruned_s, events FROM pruned")
                .unwrap_or_default()
        };
        for row in rows {
            self.head.0 += row.5;
            transaction
                .prepare_cached("INSERT OR IGNORE INTO pruned VALUES (?, ?, ?, ?, ?, ?)")?
                .execute(row)?;
        }
        transaction.commit()
    }

    fn copy_events(
        &mut self,
        target: &mut Connection,
        progress: &mut dyn FnMut(u64, u64),
    ) -> rusqlite::Result<()> {
        let last = self.last_position()?;
        let mut next = self.position_from(1);
        while next <= last {
            let transaction = target.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for _ in 0..BATCH_POSITIONS {
                if next > last {
                    break;
                }
                self.copy_event(&transaction, next)?;
                next = self.position_from(next + 1);
            }
            transaction.commit()?;
            progress(last.min(next - 1), last);
        }
        Ok(())
    }

    /// The first position from here on that has an event. Where the file cannot say, the one after the other.
    fn position_from(&self, next: u64) -> u64 {
        let found = self
            .source
            .prepare_cached("SELECT min(position) FROM events WHERE position >= ?")
            .and_then(|mut first| first.query_row([next], |row| row.get::<_, Option<u64>>(0)));
        found.ok().flatten().unwrap_or(next)
    }

    /// The last position, by whatever can be read: the events, their index, or the lengths of tasks.
    fn last_position(&self) -> rusqlite::Result<u64> {
        let read = |statement: &str| self.source.query_row(statement, (), |row| row.get(0));
        let found = [
            read("SELECT coalesce(max(position), 0) FROM events"),
            read(
                "SELECT coalesce(max(position), 0) FROM events INDEXED BY events_by_task WHERE task > 0",
            ),
            read(
                "SELECT coalesce((SELECT sum(seq) FROM tasks), 0)
                     + coalesce((SELECT sum(events) FROM pruned), 0)",
            ),
        ];
        let highest = found.iter().filter_map(|found| found.as_ref().ok()).max().copied();
        let [first, ..] = found;
        highest.map_or(first, Ok)
    }

    /// Copies the event at a position, if there is one and it can be read.
    fn copy_event(&mut self, transaction: &Transaction<'_>, position: u64) -> rusqlite::Result<()> {
        let found = match read_event(&self.source, position) {
            Ok(Some(found)) => found,
            // Pruned, or skipped by a repair before.
            Ok(None) => return Ok(()),
            Err(task_id) => {
                self.copied.events_lost += 1;
                self.cut.extend(task_id);
                return Ok(());
            }
        };
        let (task_id, stored) = found;
        let is_first = matches!(stored.body, EventBody::TaskCreated(_));
        let in_order = is_first != self.begun.contains(&task_id);
        if self.cut.contains(&task_id) || !in_order {
            self.copied.events_lost += 1;
            self.cut.insert(task_id);
            return Ok(());
        }
        let at = stored.at;
        if let (Origin::File(file), true) = (&self.origin, stored.body.ends_task()) {
            let restored = TaskRestored { file: file.clone() };
            // Refused when the task has ended already, and then its second end is refused, too.
            self.append(transaction, &task_id, restored.into(), at)?;
        }
        if !self.append(transaction, &task_id, stored.body, at)? {
            self.copied.events_lost += 1;
            self.cut.insert(task_id);
            return Ok(());
        }
        self.positions.insert(position, self.head.0);
        self.begun.insert(task_id);
        Ok(())
    }

    /// Returns false when the journal refuses the event.
    fn append(
        &mut self,
        transaction: &Transaction<'_>,
        task_id: &TaskId,
        body: EventBody,
        at: DateTime<Utc>,
    ) -> rusqlite::Result<bool> {
        let is_first = matches!(body, EventBody::TaskCreated(_));
        let expected = if is_first { Expected::NoTask } else { Expected::Exists };
        let Ok(data) = serde_json::to_string(&body) else { return Ok(false) };
        let lines = [SerializedEvent { event_type: body.event_type(), data }];
        let append =
            Append { task_id: task_id.clone(), expected, at, events: vec![body], key: None };
        self.cache.make_room(1);
        let mut appends = AppendTransaction::open(transaction, &mut self.cache, self.head);
        let is_stored = appends.append(&append, &lines)?.is_ok();
        self.head = appends.finish()?;
        self.copied.events += u64::from(is_stored);
        Ok(is_stored)
    }

    /// Ends tasks that are not complete and had not ended.
    fn end_cut_tasks(
        &mut self,
        target: &mut Connection,
        now: DateTime<Utc>,
    ) -> rusqlite::Result<()> {
        let transaction = target.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut cut: Vec<TaskId> = self.cut.intersection(&self.begun).cloned().collect();
        cut.sort();
        for task_id in cut {
            let error = "events of this task were lost with a damaged journal: start a new task";
            let detail = Some(json!({ "code": "journal_damaged", "error": error }));
            let end = StatusChanged { detail, ..StatusChanged::new(TaskStatus::Failed) };
            // Refused when it has ended already.
            self.append(&transaction, &task_id, end.into(), now)?;
        }
        transaction.commit()
    }

    /// Idempotency keys of saved tasks, as far as they can be read.
    fn copy_keys(&mut self, target: &mut Connection) -> rusqlite::Result<()> {
        let keys: Vec<(String, String, u64, u64)> = {
            let read = || -> rusqlite::Result<Vec<_>> {
                let mut keys = self.source.prepare(
                    "SELECT key, task_id, position, keys.seq FROM keys
                     JOIN tasks ON tasks.id = keys.task",
                )?;
                let rows = keys.query_map((), |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
                })?;
                Ok(rows.map_while(Result::ok).collect())
            };
            read().unwrap_or_default()
        };
        let transaction = target.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for (key, task_id, position, seq) in keys {
            let position = self.positions.get(&position).copied().unwrap_or(0);
            transaction
                .prepare_cached(
                    "INSERT OR IGNORE INTO keys (key, task, position, seq)
                     SELECT ?1, id, ?3, ?4 FROM tasks WHERE task_id = ?2",
                )?
                .execute((key, task_id, position, seq))?;
        }
        transaction.commit()
    }
}

/// The event at a position. `Err` when it cannot be read, with its task where that can.
fn read_event(
    connection: &Connection,
    position: u64,
) -> Result<Option<(TaskId, StoredEvent)>, Option<TaskId>> {
    let read = || -> rusqlite::Result<_> {
        let mut event = connection.prepare_cached(concat!(
            "SELECT ",
            event_columns!("events"),
            ", task FROM events WHERE position = ?"
        ))?;
        let mut rows = event.query([position])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let stored = StoredEvent::read(row, 0, Position(position)).ok();
        Ok(Some((row.get::<_, i64>(EVENT_COLUMNS)?, stored)))
    };
    let Some((row, stored)) = read().map_err(|_| None)? else { return Ok(None) };
    let task_id = task_of(connection, row).ok_or(None)?;
    match stored {
        Some(stored) => Ok(Some((task_id, stored))),
        None => Err(Some(task_id)),
    }
}

/// The id of a task: from its row, or from the index of ids when the row cannot be read.
fn task_of(connection: &Connection, row: i64) -> Option<TaskId> {
    let from = |statement: &str| -> Option<TaskId> {
        let mut task = connection.prepare_cached(statement).ok()?;
        task.query_row([row], |row| read_text(row, 0)).ok()
    };
    from("SELECT task_id FROM tasks WHERE id = ?").or_else(|| {
        from("SELECT task_id FROM tasks INDEXED BY sqlite_autoindex_tasks_1 WHERE +id = ?")
    })
}
