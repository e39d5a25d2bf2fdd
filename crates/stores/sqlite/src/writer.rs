//! The one thread that writes.
//!
//! It takes all appends that wait, up to a limit, writes them in one transaction, and answers
//! them once that is durable. When the transaction fails, none of them is written and each is
//! told so. An append that waits when the journal is dropped is still written.

use std::slice;
use std::thread::JoinHandle;

use antiphon_core::port::{Append, Appended, JournalError};
use antiphon_core::{EventBody, Position};
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use crate::fault::{fault, is_unreadable};
use crate::ledger::Ledger;
use crate::standing::Standings;

/// Appends that may wait; the next one waits for room before it waits for the disk.
pub const APPENDS_WAITING_MAX: usize = 4096;

/// Most appends in one transaction.
pub const BATCH_APPENDS_MAX: usize = 1024;

/// Longest append, in bytes of the JSON of its events. A longer one is
/// [`JournalError::Invalid`].
pub const APPEND_BYTES_MAX: usize = 64 * 1024 * 1024;

pub(crate) type Answer = Result<Appended, JournalError>;

#[derive(Debug)]
pub(crate) struct Writer {
    /// `None` once it is being dropped.
    queue: Option<mpsc::Sender<Waiting>>,
    thread: Option<JoinHandle<()>>,
}

struct Waiting {
    append: Append,
    /// Made ready by whoever asked.
    lines: Vec<Line>,
    answer: oneshot::Sender<Answer>,
}

/// An event as it is written.
pub(crate) struct Line {
    pub(crate) event_type: &'static str,
    pub(crate) data: String,
}

impl Writer {
    pub(crate) fn start(connection: Connection) -> rusqlite::Result<Self> {
        let head =
            connection
                .query_row("SELECT coalesce(max(position), 0) FROM events", (), |row| row.get(0))?;
        let (queue, waiting) = mpsc::channel(APPENDS_WAITING_MAX);
        let desk = Desk { connection, standings: Standings::default(), head: Position(head) };
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

fn lines(append: &Append) -> Result<Vec<Line>, JournalError> {
    let invalid =
        |reason: String| JournalError::Invalid { task_id: append.task_id.clone(), reason };
    let mut room = APPEND_BYTES_MAX;
    let line = |body: &EventBody| {
        let data = serde_json::to_string(body).map_err(|error| invalid(error.to_string()))?;
        room = room.checked_sub(data.len()).ok_or_else(|| {
            invalid(format!(
                "its events have more than {APPEND_BYTES_MAX} bytes: send less at once"
            ))
        })?;
        Ok(Line { event_type: body.event_type(), data })
    };
    append.events.iter().map(line).collect()
}

fn gone() -> JournalError {
    JournalError::Unavailable { reason: "its writer has ended".to_owned() }
}

/// The writer's side of the queue.
struct Desk {
    connection: Connection,
    standings: Standings,
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
        match self.try_write(batch) {
            Ok(answers) => answers,
            Err(error) => {
                // What is at hand has got ahead of the file.
                self.standings.forget();
                if is_unreadable(&error) && batch.len() > 1 {
                    // What is there of one task makes no sense. That is no fault of the others.
                    return batch.iter().flat_map(|one| self.write(slice::from_ref(one))).collect();
                }
                batch.iter().map(|_| Err(fault(self.head, &error))).collect()
            }
        }
    }

    fn try_write(&mut self, batch: &[Waiting]) -> rusqlite::Result<Vec<Answer>> {
        self.standings.make_room(batch.len());
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut ledger = Ledger::open(&transaction, &mut self.standings, self.head);
        let answers = batch
            .iter()
            .map(|waiting| ledger.enter(&waiting.append, &waiting.lines))
            .collect::<Result<_, _>>()?;
        let head = ledger.head();
        transaction.commit()?;
        self.head = head;
        Ok(answers)
    }
}
