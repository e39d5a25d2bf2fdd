//! The one thread that writes.
//!
//! It takes all appends that wait, up to a limit, writes them in one transaction, and answers
//! them once that is durable. When the transaction fails, none of them is written and each is
//! told so. An append that waits when the journal is dropped is still written.

use std::thread::JoinHandle;

use antiphon_core::port::{Append, Appended, IdempotencyKey, JournalError, TaskHead};
use antiphon_core::{Position, Seq, TaskId};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

/// Appends that may wait; the next one waits for room before it waits for the disk.
pub const APPENDS_WAITING_MAX: usize = 4096;

/// Most appends in one transaction.
pub const BATCH_APPENDS_MAX: usize = 1024;

type Answer = Result<Appended, JournalError>;

#[derive(Debug)]
pub(crate) struct Writer {
    /// `None` once it is being dropped.
    queue: Option<mpsc::Sender<Waiting>>,
    thread: Option<JoinHandle<()>>,
}

struct Waiting {
    append: Append,
    /// The events' types and data, made ready by whoever asked.
    lines: Vec<(&'static str, String)>,
    answer: oneshot::Sender<Answer>,
}

impl Writer {
    pub(crate) fn start(connection: Connection) -> rusqlite::Result<Self> {
        let head =
            connection
                .query_row("SELECT coalesce(max(position), 0) FROM events", (), |row| row.get(0))?;
        let (queue, waiting) = mpsc::channel(APPENDS_WAITING_MAX);
        let desk = Desk { connection, head: Position(head) };
        let thread = std::thread::Builder::new()
            .name("journal-writer".to_owned())
            .spawn(move || desk.work(waiting))
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        Ok(Self { queue: Some(queue), thread: Some(thread) })
    }

    pub(crate) async fn append(&self, append: Append) -> Answer {
        append.check_shape()?;
        let lines = lines(&append)?;
        let (answer, answered) = oneshot::channel();
        let queue = self.queue.as_ref().ok_or_else(gone)?;
        queue.send(Waiting { append, lines, answer }).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // A writer that panicked has nothing more to say.
            let _ = thread.join();
        }
    }
}

fn lines(append: &Append) -> Result<Vec<(&'static str, String)>, JournalError> {
    let line = |body: &antiphon_core::EventBody| {
        let data = serde_json::to_string(body).map_err(|error| JournalError::Invalid {
            task_id: append.task_id.clone(),
            reason: error.to_string(),
        })?;
        Ok((body.event_type(), data))
    };
    append.events.iter().map(line).collect()
}

fn gone() -> JournalError {
    JournalError::Unavailable { reason: "its writer has ended".to_owned() }
}

fn unavailable(error: &rusqlite::Error) -> JournalError {
    JournalError::Unavailable { reason: error.to_string() }
}

/// The writer's side of the queue.
struct Desk {
    connection: Connection,
    head: Position,
}

impl Desk {
    fn work(mut self, mut waiting: mpsc::Receiver<Waiting>) {
        let mut batch = Vec::with_capacity(BATCH_APPENDS_MAX);
        while waiting.blocking_recv_many(&mut batch, BATCH_APPENDS_MAX) > 0 {
            let answers = self.write(&batch);
            for (waiting, answer) in batch.drain(..).zip(answers) {
                // Whoever stopped waiting finds it in the journal.
                let _ = waiting.answer.send(answer);
            }
        }
    }

    /// Writes a batch. There is an answer for each append, and all are true when it returns.
    fn write(&mut self, batch: &[Waiting]) -> Vec<Answer> {
        let head = self.head;
        match self.try_write(batch) {
            Ok(answers) => answers,
            Err(error) => {
                self.head = head;
                batch.iter().map(|_| Err(unavailable(&error))).collect()
            }
        }
    }

    fn try_write(&mut self, batch: &[Waiting]) -> rusqlite::Result<Vec<Answer>> {
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut page = Ledger { transaction: &transaction, head: self.head };
        let answers = batch.iter().map(|waiting| page.enter(waiting)).collect::<Result<_, _>>()?;
        let head = page.head;
        transaction.commit()?;
        self.head = head;
        Ok(answers)
    }
}

/// One transaction.
struct Ledger<'a> {
    transaction: &'a Transaction<'a>,
    head: Position,
}

impl Ledger<'_> {
    /// Writes one append, or says why not. `Err` is a fault of the file, not of the append.
    fn enter(&mut self, waiting: &Waiting) -> rusqlite::Result<Answer> {
        let append = &waiting.append;
        if let Some(key) = &append.key
            && let Some(first) = self.answered(key)?
        {
            return Ok(Ok(first));
        }
        let task = self.task(&append.task_id)?;
        if let Err(refusal) = append.check_place(task.map(|(_, head)| head)) {
            return Ok(Err(refusal));
        }
        let seq = task.map_or(0, |(_, head)| head.seq.0);
        let last = seq + append.events.len() as u64;
        let ended = append.events.last().is_some_and(antiphon_core::EventBody::ends_task);
        let row = self.advance(&append.task_id, task.map(|(row, _)| row), last, ended)?;
        self.write_events(waiting, row, seq)?;
        let appended = Appended {
            task_id: append.task_id.clone(),
            position: self.head,
            seq: Seq(last),
            deduplicated: false,
        };
        if let Some(IdempotencyKey(key)) = &append.key {
            self.transaction
                .prepare_cached("INSERT INTO keys (key, task, position, seq) VALUES (?, ?, ?, ?)")?
                .execute((key, row, appended.position.0, last))?;
        }
        Ok(Ok(appended))
    }

    fn write_events(&mut self, waiting: &Waiting, row: i64, seq: u64) -> rusqlite::Result<()> {
        let mut insert = self.transaction.prepare_cached(
            "INSERT INTO events (position, task, seq, at_s, at_ns, type, data)
             VALUES (?, ?, ?, ?, ?, ?, ?)",
        )?;
        let at = waiting.append.at;
        for ((event_type, data), seq) in waiting.lines.iter().zip(seq + 1..) {
            self.head.0 += 1;
            insert.execute((
                self.head.0,
                row,
                seq,
                at.timestamp(),
                at.timestamp_subsec_nanos(),
                event_type,
                data,
            ))?;
        }
        Ok(())
    }

    /// The row of a task, moved on to `seq`.
    fn advance(
        &self,
        task_id: &TaskId,
        row: Option<i64>,
        seq: u64,
        ended: bool,
    ) -> rusqlite::Result<i64> {
        match row {
            Some(row) => {
                self.transaction
                    .prepare_cached("UPDATE tasks SET seq = ?, ended = ? WHERE id = ?")?
                    .execute((seq, ended, row))?;
                Ok(row)
            }
            None => self
                .transaction
                .prepare_cached("INSERT INTO tasks (task_id, seq, ended) VALUES (?, ?, ?)")?
                .insert((task_id.as_str(), seq, ended)),
        }
    }

    fn task(&self, task_id: &TaskId) -> rusqlite::Result<Option<(i64, TaskHead)>> {
        self.transaction
            .prepare_cached("SELECT id, seq, ended FROM tasks WHERE task_id = ?")?
            .query_row([task_id.as_str()], |row| {
                Ok((row.get(0)?, TaskHead { seq: Seq(row.get(1)?), ended: row.get(2)? }))
            })
            .optional()
    }

    /// The answer a key was given the first time.
    fn answered(&self, key: &IdempotencyKey) -> rusqlite::Result<Option<Appended>> {
        let found = self
            .transaction
            .prepare_cached(
                "SELECT tasks.task_id, keys.position, keys.seq
                 FROM keys JOIN tasks ON tasks.id = keys.task WHERE key = ?",
            )?
            .query_row([&key.0], |row| {
                Ok((row.get::<_, String>(0)?, Position(row.get(1)?), Seq(row.get(2)?)))
            })
            .optional()?;
        let Some((task_id, position, seq)) = found else { return Ok(None) };
        let task_id = TaskId::parse(&task_id)
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        Ok(Some(Appended { task_id, position, seq, deduplicated: true }))
    }
}
