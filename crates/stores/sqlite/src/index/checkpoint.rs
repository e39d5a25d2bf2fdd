//! Checkpoints of tasks. What is read is compared with the events: a row that does not fit them is none.

use antiphon_core::port::{Checkpoint, JournalError};
use antiphon_core::{Position, Seq, TaskId};
use rusqlite::{Connection, OptionalExtension, Transaction};
use sha2::{Digest, Sha256};

use crate::fault::fault;

/// What the writer does with checkpoints.
#[derive(Debug)]
pub(crate) enum CheckpointChange {
    /// Keeps one in place of the one before.
    Save(Checkpoint),
    /// Removes all.
    Forget,
}

impl CheckpointChange {
    pub(crate) fn apply(&self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        match self {
            Self::Save(Checkpoint { task_id, seq, position, data }) => transaction
                .prepare_cached(
                    "INSERT OR REPLACE INTO checkpoints (task, seq, position, checksum, data)
                     SELECT id, ?2, ?3, ?4, ?5 FROM tasks WHERE task_id = ?1 AND NOT ended",
                )?
                .execute((task_id.as_str(), seq.0, position.0, checksum(data), data)),
            Self::Forget => transaction.execute("DELETE FROM checkpoints", ()),
        }
        .map(drop)
    }
}

/// The checkpoint of a task, if it fits the events.
pub(crate) fn checkpoint(
    connection: &mut Connection,
    task_id: &TaskId,
) -> Result<Option<Checkpoint>, JournalError> {
    let found = connection
        .prepare_cached(
            "SELECT checkpoints.seq, checkpoints.position, checksum, checkpoints.data
             FROM tasks JOIN checkpoints ON checkpoints.task = tasks.id
             JOIN events ON events.position = checkpoints.position
                AND events.task = tasks.id AND events.seq = checkpoints.seq
             WHERE task_id = ?",
        )
        .and_then(|mut found| {
            found
                .query_row([task_id.as_str()], |row| {
                    let data: String = row.get(3)?;
                    let is_whole = row.get::<_, i64>(2)? == checksum(&data);
                    let (seq, position) = (Seq(row.get(0)?), Position(row.get(1)?));
                    let task_id = task_id.clone();
                    Ok(is_whole.then_some(Checkpoint { task_id, seq, position, data }))
                })
                .optional()
        });
    match found {
        Ok(found) => Ok(found.flatten()),
        Err(error) => Err(fault(Position(0), &error)),
    }
}

/// The first bytes of a hash.
fn checksum(data: &str) -> i64 {
    let hash = Sha256::digest(data.as_bytes());
    hash.iter().take(8).fold(0, |sum, byte| (sum << 8) | i64::from(*byte))
}
