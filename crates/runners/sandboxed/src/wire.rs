//! Messages between the runner and its worker.
//!
//! One frame is four bytes of length and so many bytes of JSON, in both directions of one socket.
//! What belongs to one question carries its number, so that several can be open. A frame that is
//! too long or means nothing ends the worker: nothing of it is acted on.
//!
//! | the worker says        | the runner answers                                              |
//! |------------------------|-----------------------------------------------------------------|
//! | `ready`                | nothing; `hello` came before it                                 |
//! | `append` `read` `tasks`| `appended` `page` `tasks` with the same number                  |
//! | `history`              | `history` with the same number, as much as fits into a frame    |
//! | `open`                 | `pieces` as they come, then `end`                               |
//! | `more`                 | one more `pieces`; without it [`BATCHES_MAX`] are on their way  |
//! | `close`                | nothing; the answer is no longer wanted                         |
//! | `done`                 | the end of the socket                                           |
//!
//! The runner says `cancel`, `interrupt` and `rest` when it wants the worker to come to an end.

mod frame;
mod journal;

use antiphon_core::port::{JournalError, RunnerError};
use antiphon_core::{Piece, ProviderError, Request, TaskId, TaskSummary};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use frame::{
    FRAME_BYTES_MAX, FrameError, decode, encode, receive, receive_now, send_now,
};
pub(crate) use journal::{
    AppendWire, AppendedWire, EventWire, HistoryPageWire, HistoryWire, PageWire, ReadWire,
    TaskScope,
};

/// Raised when a frame changes its meaning. Both sides are the same program, unless the binary was
/// replaced in between.
pub(crate) const VERSION: u32 = 2;

/// Batches of pieces of one answer that are on their way.
pub(crate) const BATCHES_MAX: usize = 16;

/// Pieces in one batch.
pub(crate) const BATCH_PIECES_MAX: usize = 64;

/// Numbers a question.
pub(crate) type Id = u64;

/// From the worker to the runner.
// Named from outside: JSON that is kept byte for byte cannot be read behind a tag.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum FromWorker {
    /// It could not be restricted, and ends.
    Refused { reason: String },
    /// It is restricted, and works.
    Ready { version: u32 },
    /// Adds to its task.
    Append { id: Id, append: AppendWire },
    /// Reads its task, or what was said before it.
    Read { id: Id, read: ReadWire },
    /// Reads the conversation up to an event, of all tasks that it goes through.
    History { id: Id, ask: HistoryWire },
    /// Looks at its task, or at its tree.
    Tasks { id: Id, whose: TaskScope },
    /// Asks the model.
    Open { id: Id, request: Box<Request> },
    /// Has read one batch.
    More { id: Id },
    /// Will read no more.
    Close { id: Id },
    /// It has stopped, and why.
    Done { outcome: OutcomeWire },
}

/// From the runner to the worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum ToWorker<E> {
    /// What to work on. Always the first.
    Hello { version: u32, task_id: TaskId, settings: Value },
    /// What came of an append.
    Appended { id: Id, answer: Result<AppendedWire, JournalError> },
    /// What was read.
    Page { id: Id, answer: Result<PageWire<E>, JournalError> },
    /// Part of a conversation.
    History { id: Id, answer: Result<HistoryPageWire<E>, JournalError> },
    /// What was looked at.
    Tasks { id: Id, answer: Result<Vec<TaskSummary>, JournalError> },
    /// More of an answer of the model.
    Pieces { id: Id, pieces: Vec<Piece> },
    /// There is no more of it.
    End { id: Id, failure: Option<ProviderError> },
    /// The task is canceled.
    Cancel {},
    /// A person interrupts the turn.
    Interrupt {},
    /// Everything comes to rest.
    Rest {},
}

/// How a worker stopped.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum OutcomeWire {
    Stopped {},
    Unavailable { reason: String },
    Storage { reason: String },
    Refused { reason: String },
    Journal(JournalError),
}

impl From<Result<(), RunnerError>> for OutcomeWire {
    fn from(outcome: Result<(), RunnerError>) -> Self {
        match outcome {
            Ok(()) => Self::Stopped {},
            Err(RunnerError::Unavailable { reason }) => Self::Unavailable { reason },
            Err(RunnerError::Storage { reason }) => Self::Storage { reason },
            Err(RunnerError::Refused { reason }) => Self::Refused { reason },
            Err(RunnerError::Journal(error)) => Self::Journal(error),
        }
    }
}

impl From<OutcomeWire> for Result<(), RunnerError> {
    fn from(wire: OutcomeWire) -> Self {
        match wire {
            OutcomeWire::Stopped {} => Ok(()),
            OutcomeWire::Unavailable { reason } => Err(RunnerError::Unavailable { reason }),
            OutcomeWire::Storage { reason } => Err(RunnerError::Storage { reason }),
            OutcomeWire::Refused { reason } => Err(RunnerError::Refused { reason }),
            OutcomeWire::Journal(error) => Err(RunnerError::Journal(error)),
        }
    }
}
