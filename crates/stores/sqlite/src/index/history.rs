//! Which conversation a task continues, as columns of its row.

use antiphon_core::{HistoryRef, Seq};
use rusqlite::{Connection, OptionalExtension, Transaction};

/// The columns of a task that continues a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct HistoryColumns {
    /// Row of the task before; 0 when it is not there. `None`: the task continues none.
    pub(crate) row: Option<i64>,
    /// Seq of the last event that counts.
    pub(crate) seq: Option<u64>,
    /// Number of messages up to there.
    pub(crate) messages: u64,
}

impl HistoryColumns {
    /// The columns for a history. Reads the row of that task only, unless the history ends before its last event.
    pub(crate) fn of(
        connection: &Connection,
        history: Option<&HistoryRef>,
    ) -> rusqlite::Result<Self> {
        let Some(HistoryRef { task_id, seq }) = history else { return Ok(Self::default()) };
        let row: Option<i64> = connection
            .prepare_cached("SELECT id FROM tasks WHERE task_id = ?")?
            .query_row([task_id.as_str()], |row| row.get(0))
            .optional()?;
        let messages = match row {
            Some(row) => messages_until(connection, row, *seq)?,
            None => 0,
        };
        Ok(Self {
            row: Some(row.unwrap_or(0)),
            seq: Some(seq.0.min(i64::MAX.unsigned_abs())),
            messages,
        })
    }
}

/// Number of messages of a conversation up to an event of its last task.
pub(crate) fn messages_until(
    connection: &Connection,
    row: i64,
    until: Seq,
) -> rusqlite::Result<u64> {
    let (seq, own, before): (u64, u64, u64) = connection
        .prepare_cached("SELECT seq, messages, history_messages FROM tasks WHERE id = ?")?
        .query_row([row], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    if until.0 >= seq {
        return Ok(before + own);
    }
    let own: u64 = connection
        .prepare_cached(
            "SELECT count(*) FROM events WHERE task = ? AND seq <= ? AND type = 'message_appended'",
        )?
        .query_row((row, until.0), |row| row.get(0))?;
    Ok(before + own)
}

/// Fills the columns of journals before schema 8. A creation that cannot be read continues nothing.
pub(crate) fn fill(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let mut tasks = transaction.prepare(
        "SELECT task, json_extract(data, '$.history.task_id'), json_extract(data, '$.history.seq')
         FROM events WHERE seq = 1 AND type = 'task_created'
           AND CASE WHEN json_valid(data)
                    THEN json_type(data, '$.history.task_id') = 'text'
                         AND json_type(data, '$.history.seq') = 'integer'
                    ELSE 0 END
         ORDER BY position",
    )?;
    let mut rows = tasks.query(())?;
    while let Some(row) = rows.next()? {
        let (task, before): (i64, String) = (row.get(0)?, row.get(1)?);
        let seq = row.get(2).unwrap_or(i64::MAX.unsigned_abs());
        let Ok(task_id) = before.parse() else { continue };
        let history = HistoryRef { task_id, seq: Seq(seq) };
        let columns = HistoryColumns::of(transaction, Some(&history))?;
        transaction
            .prepare_cached(
                "UPDATE tasks SET history = ?2, history_seq = ?3, history_messages = ?4 WHERE id = ?1",
            )?
            .execute((task, columns.row, columns.seq, columns.messages))?;
    }
    Ok(())
}
