//! The tail: the newest tasks, which only the index of ids covers.
//!
//! A task that is added to the other indexes when it is created, and moved in them when it ends, changes a dozen pages for
//! a few hundred bytes. So tasks are added to them many at a time, oldest first. A reader looks at every task of the tail
//! and finds the others with the indexes: both are in the file, so a list is complete at any time, in any process.
//!
//! The last indexed task is the newest task of `sessions`. A tail that is too long costs time, nothing else.

use rusqlite::{Connection, Transaction, TransactionBehavior};

/// Length of the tail at which tasks are indexed.
const TAIL_TASKS_MAX: i64 = 512;

/// How many of them stay: they may not have ended, and an indexed task that ends changes the indexes.
const KEPT_TASKS: i64 = 128;

/// The row number of the last indexed task, in SQL.
macro_rules! indexed_until {
    () => {
        "(SELECT coalesce(max(last_task), 0) FROM sessions)"
    };
}
pub(crate) use indexed_until;

/// What the writer knows about the tail.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tail {
    indexed_until: i64,
}

impl Tail {
    pub(crate) fn of(connection: &Connection) -> rusqlite::Result<Self> {
        let indexed_until =
            connection.query_row(concat!("SELECT ", indexed_until!()), (), |row| row.get(0))?;
        Ok(Self { indexed_until })
    }

    /// Whether tasks should be indexed. `next_row` is the row number of the next task.
    pub(crate) fn is_long(self, next_row: i64) -> bool {
        next_row - 1 - self.indexed_until > TAIL_TASKS_MAX
    }

    /// Indexes all but the newest tasks.
    pub(crate) fn shorten(
        &mut self,
        connection: &mut Connection,
        next_row: i64,
    ) -> rusqlite::Result<()> {
        let until = next_row - 1 - KEPT_TASKS;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        index_until(&transaction, until)?;
        transaction.commit()?;
        self.indexed_until = until;
        Ok(())
    }
}

/// Indexes every task.
pub(crate) fn index_all(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    index_until(transaction, i64::MAX)
}

fn index_until(transaction: &Transaction<'_>, until: i64) -> rusqlite::Result<()> {
    let after = Tail::of(transaction)?.indexed_until;
    transaction
        .prepare_cached(
            "INSERT INTO sessions (session_id, first_task, last_task, tasks)
             SELECT session, min(id), max(id), count(*) FROM tasks
             WHERE id > ? AND id <= ? GROUP BY session
             ON CONFLICT (session_id) DO UPDATE
             SET last_task = excluded.last_task, tasks = tasks + excluded.tasks",
        )?
        .execute((after, until))?;
    transaction
        .prepare_cached("UPDATE tasks SET indexed = 1 WHERE id > ? AND id <= ?")?
        .execute((after, until))?;
    Ok(())
}
