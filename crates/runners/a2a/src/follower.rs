//! Follows a remote task and records what happens in the local one.
//!
//! The local journal holds the progress: which remote task it is, and which of its messages were recorded. A stream tells
//! of changes early and shows text; what counts is read with `GetTask`. So a stream that breaks, repeats itself or says
//! something else than the task does changes nothing.

mod attempt;
mod record;

use std::sync::Arc;
use std::time::Duration;

use antiphon_client::RetryPolicy;
use antiphon_core::Cancel;
use antiphon_core::port::{AnswerDisplay, JournalError, RunnerError, TaskJournal, TaskUpdates};
use antiphon_followed_task::LocalTask;
use backon::ExponentialBackoff;

use crate::failure::Failure;
use crate::note::Note;
use crate::remote_agents::RemoteAgent;
use crate::remote_work::RemoteWork;

/// Messages of a remote task that are recorded, at most.
pub(crate) const MESSAGES_MAX: usize = 1000;

/// Events of streams that one follower reads, at most: no stream goes on forever.
pub(crate) const EVENTS_MAX: usize = 200_000;

/// Pause before a task without a stream is read again, at first.
const POLL_AFTER: Duration = Duration::from_millis(250);

/// Longest pause between two reads of a task without a stream.
const POLL_AFTER_MAX: Duration = Duration::from_secs(5);

/// How long a stream may be silent before the task is read.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// Follows a remote task.
pub(crate) struct Follower {
    pub(crate) agent: Arc<RemoteAgent>,
    pub(crate) retry: RetryPolicy,
    /// Pauses that are left until the remote agent answers.
    pub(crate) waits: ExponentialBackoff,
    pub(crate) local: LocalTask,
    pub(crate) note: Note,
    pub(crate) work: RemoteWork,
    /// Messages that this follower recorded.
    pub(crate) recorded: usize,
    /// Events that this follower read.
    pub(crate) events: usize,
    pub(crate) journal: Arc<dyn TaskJournal>,
    pub(crate) display: Arc<dyn AnswerDisplay>,
    pub(crate) cancel: Cancel,
    /// The cancel is forwarded.
    pub(crate) canceled: bool,
    pub(crate) interrupt: Cancel,
    /// Tells of commands that arrived here.
    pub(crate) updates: Box<dyn TaskUpdates>,
}

/// Why following stops.
enum Stop {
    /// The task has ended, or is paused or interrupted here.
    Done,
    /// The remote agent did not do what it was asked.
    Remote(Failure),
    /// The local journal failed, or the task cannot be sent.
    Local(RunnerError),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Remote(failure)
    }
}

impl From<RunnerError> for Stop {
    fn from(error: RunnerError) -> Self {
        Self::Local(error)
    }
}

impl From<JournalError> for Stop {
    fn from(error: JournalError) -> Self {
        Self::Local(error.into())
    }
}

impl Follower {
    pub(crate) async fn run(mut self) -> Result<(), RunnerError> {
        loop {
            let Err(stop) = self.attempt().await;
            let failure = match stop {
                Stop::Done => return Ok(()),
                Stop::Local(error) => return Err(error),
                Stop::Remote(failure) => failure,
            };
            // Its card may have changed.
            *self.agent.connection.lock().await = None;
            let reason = format!("the remote agent `{}`: {}", self.agent.name, failure.reason());
            let wait = match failure {
                Failure::Unreachable(_) => self.waits.next(),
                Failure::Error { .. } if self.local.relayed.is_some() && failure.is_not_found() => {
                    let reason = format!("{reason}: it has lost the task");
                    return Err(RunnerError::Refused { reason });
                }
                Failure::Error { .. } | Failure::Refused(_) => {
                    return Err(RunnerError::Refused { reason });
                }
            };
            let Some(wait) = wait else { return Err(RunnerError::Unavailable { reason }) };
            tracing::debug!(task.id = %self.local.task_id, reason, "tries the remote agent again");
            // A new cancellation is worth a try at once.
            let was_canceled = is_ready(&mut self.cancel);
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = &mut self.cancel, if !was_canceled => {}
            }
        }
    }
}

/// Whether the task is canceled.
fn is_ready(cancel: &mut Cancel) -> bool {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    std::pin::Pin::new(cancel).poll(&mut context).is_ready()
}
