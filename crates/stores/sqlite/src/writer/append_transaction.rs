//! One transaction of the writer thread.

use antiphon_core::port::{Append, Appended, IdempotencyKey, JournalError, TaskHead};
use antiphon_core::{EVENT_VERSION, EventBody, Position, Seq, SpendingFold, TaskId, TaskSummary};
use rusqlite::{Connection, OptionalExtension, Transaction};

use crate::index::spending;
use crate::index::tables::Tables;
use crate::row::column::read_text;
use crate::writer::task_head_cache::{CachedTask, TaskHeadCache};
use crate::writer::{Answer, SerializedEvent};

pub(crate) struct AppendTransaction<'a> {
    transaction: &'a Transaction<'a>,
    tables: Tables<'a>,
    cache: &'a mut TaskHeadCache,
    head: Position,
    /// Spending and raised limits of all appends, written once: they have few rows.
    spending: SpendingFold,
}

impl<'a> AppendTransaction<'a> {
    /// `head` is the last position in the file.
    pub(crate) fn open(
        transaction: &'a Transaction<'a>,
        cache: &'a mut TaskHeadCache,
        head: Position,
    ) -> Self {
        Self {
            transaction,
            tables: Tables::new(transaction),
            cache,
            head,
            spending: SpendingFold::default(),
        }
    }

    /// Writes what all appends have in common. Returns the last position, this transaction included.
    pub(crate) fn finish(mut self) -> rusqlite::Result<Position> {
        if !self.spending.is_empty() {
            spending::add(self.transaction, &self.spending.take())?;
        }
        Ok(self.head)
    }

    /// Writes one append, or refuses it. The outer `Err` is a fault of the file, not of the append: the
    /// transaction must be rolled back.
    pub(crate) fn append(
        &mut self,
        append: &Append,
        events_json: &[SerializedEvent],
    ) -> rusqlite::Result<Answer> {
        if let Some(key) = &append.key
            && let Some(first) = answered(self.transaction, key)?
        {
            return Ok(Ok(first));
        }
        let head = self.head_of(&append.task_id)?;
        if let Err(refusal) = append.check_position(head) {
            return Ok(Err(refusal));
        }
        self.advance(append)?;
        let Some(cached) = self.cache.get_mut(&append.task_id) else {
            let reason = "a task must begin with `task_created`".to_owned();
            return Ok(Err(JournalError::Invalid { task_id: append.task_id.clone(), reason }));
        };
        let row = cached.row;
        let mut seq = head.map_or(Seq(0), |head| head.seq);
        let mut insert = self.transaction.prepare_cached(
            "INSERT INTO events (position, task, seq, at_s, at_ns, type, data, v)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        )?;
        for (body, line) in append.events.iter().zip(events_json) {
            self.head.0 += 1;
            seq.0 += 1;
            insert.execute((
                self.head.0,
                row,
                seq.0,
                append.at.timestamp(),
                append.at.timestamp_subsec_nanos(),
                line.event_type,
                &line.data,
                EVENT_VERSION,
            ))?;
            self.tables.index(cached, self.head, body)?;
        }
        if cached.head().ended {
            self.cache.remove(&append.task_id);
        }
        let task_id = append.task_id.clone();
        let appended = Appended { task_id, position: self.head, seq, deduplicated: false };
        if let Some(IdempotencyKey(key)) = &append.key {
            self.transaction
                .prepare_cached("INSERT INTO keys (key, task, position, seq) VALUES (?, ?, ?, ?)")?
                .execute((key, row, appended.position.0, seq.0))?;
        }
        Ok(Ok(appended))
    }

    /// Position of a task. Caches the task unless it has ended.
    fn head_of(&mut self, task_id: &TaskId) -> rusqlite::Result<Option<TaskHead>> {
        if let Some(cached) = self.cache.get(task_id) {
            return Ok(Some(cached.head()));
        }
        let Some(cached) = self.tables.task(task_id)? else { return Ok(None) };
        let head = cached.head();
        if !head.ended {
            self.cache.insert(cached);
        }
        Ok(Some(head))
    }

    /// Writes the task's row as it is after the whole append.
    fn advance(&mut self, append: &Append) -> rusqlite::Result<()> {
        let Append { task_id, at, events, .. } = append;
        if let Some(cached) = self.cache.get_mut(task_id) {
            for body in events {
                cached.apply(body, *at, &mut self.spending);
            }
            return self.tables.update(cached);
        }
        if let Some((EventBody::TaskCreated(created), others)) = events.split_first() {
            let summary = TaskSummary::created(task_id.clone(), created, *at);
            let row = match self.cache.next_row {
                Some(row) => row,
                None => self.tables.next_row()?,
            };
            self.cache.next_row = Some(row + 1);
            let mut cached = CachedTask::new(row, summary);
            for body in others {
                cached.apply(body, *at, &mut self.spending);
            }
            self.tables.create(&mut cached, created.history.as_ref())?;
            self.cache.insert(cached);
        }
        Ok(())
    }
}

/// The first answer of a key.
pub(crate) fn answered(
    connection: &Connection,
    key: &IdempotencyKey,
) -> rusqlite::Result<Option<Appended>> {
    connection
        .prepare_cached(
            "SELECT coalesce(tasks.task_id, pruned.task_id), keys.position, keys.seq
             FROM keys LEFT JOIN tasks ON tasks.id = keys.task
             LEFT JOIN pruned ON pruned.id = keys.task WHERE key = ?",
        )?
        .query_row([&key.0], |row| {
            Ok(Appended {
                task_id: read_text(row, 0)?,
                position: Position(row.get(1)?),
                seq: Seq(row.get(2)?),
                deduplicated: true,
            })
        })
        .optional()
}
