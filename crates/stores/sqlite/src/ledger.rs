//! One transaction of the writer.

use antiphon_core::port::{Append, Appended, IdempotencyKey, JournalError, TaskHead};
use antiphon_core::{EVENT_VERSION, EventBody, Position, Seq, TaskId, TaskSummary};
use rusqlite::{Connection, OptionalExtension, Transaction};

use crate::column::read_text;
use crate::standing::{Standings, TaskHeadCache};
use crate::tables::Tables;
use crate::writer::{Answer, Line};

pub(crate) struct Ledger<'a> {
    transaction: &'a Transaction<'a>,
    tables: Tables<'a>,
    standings: &'a mut Standings,
    head: Position,
}

impl<'a> Ledger<'a> {
    /// `head` is the last position that is written.
    pub(crate) fn open(
        transaction: &'a Transaction<'a>,
        standings: &'a mut Standings,
        head: Position,
    ) -> Self {
        Self { transaction, tables: Tables::new(transaction), standings, head }
    }

    /// The last position, those of this transaction included.
    pub(crate) fn head(&self) -> Position {
        self.head
    }

    /// Writes one append, or says why not. `Err` is a fault of the file, not of the append: then
    /// the transaction is no good any more.
    pub(crate) fn enter(&mut self, append: &Append, lines: &[Line]) -> rusqlite::Result<Answer> {
        if let Some(key) = &append.key
            && let Some(first) = answered(self.transaction, key)?
        {
            return Ok(Ok(first));
        }
        let place = self.place(&append.task_id)?;
        if let Err(refusal) = append.check_position(place) {
            return Ok(Err(refusal));
        }
        self.advance(append)?;
        let Some(standing) = self.standings.get_mut(&append.task_id) else {
            let reason = "a task begins with its creation".to_owned();
            return Ok(Err(JournalError::Invalid { task_id: append.task_id.clone(), reason }));
        };
        let row = standing.row;
        let mut seq = place.map_or(Seq(0), |head| head.seq);
        let mut insert = self.transaction.prepare_cached(
            "INSERT INTO events (position, task, seq, at_s, at_ns, type, data, v)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        )?;
        for (body, line) in append.events.iter().zip(lines) {
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
            self.tables.note(standing, self.head, body)?;
        }
        if standing.head().ended {
            self.standings.remove(&append.task_id);
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

    /// Where a task is; if it has not ended, it is at hand from now on.
    fn place(&mut self, task_id: &TaskId) -> rusqlite::Result<Option<TaskHead>> {
        if let Some(standing) = self.standings.get(task_id) {
            return Ok(Some(standing.head()));
        }
        let Some(standing) = self.tables.standing(task_id)? else { return Ok(None) };
        let head = standing.head();
        if !head.ended {
            self.standings.insert(standing);
        }
        Ok(Some(head))
    }

    /// Writes where the task stands when all of the append has happened.
    fn advance(&mut self, append: &Append) -> rusqlite::Result<()> {
        let Append { task_id, at, events, .. } = append;
        if let Some(standing) = self.standings.get_mut(task_id) {
            for body in events {
                standing.apply(body, *at);
            }
            return self.tables.update(standing);
        }
        if let Some((EventBody::TaskCreated(created), others)) = events.split_first() {
            let summary = TaskSummary::created(task_id.clone(), created, *at);
            let row = match self.standings.next_row {
                Some(row) => row,
                None => self.tables.next_row()?,
            };
            self.standings.next_row = Some(row + 1);
            let mut standing = TaskHeadCache::new(row, summary);
            for body in others {
                standing.apply(body, *at);
            }
            self.tables.create(&mut standing)?;
            self.standings.insert(standing);
        }
        Ok(())
    }
}

/// The answer a key was given the first time.
pub(crate) fn answered(
    connection: &Connection,
    key: &IdempotencyKey,
) -> rusqlite::Result<Option<Appended>> {
    connection
        .prepare_cached(
            "SELECT tasks.task_id, keys.position, keys.seq
             FROM keys JOIN tasks ON tasks.id = keys.task WHERE key = ?",
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
