//! One command: its output, whether it runs, how it ended.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use antiphon_core::port::Progress;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use crate::call_record::CallRecord;
use crate::message::{CallId, Exit};
use crate::network::CallNetwork;
use crate::progress_writer::ProgressWriter;
use crate::refusal::SandboxBounds;
use crate::transcript::{Cursor, Excerpt, Transcript};

pub(crate) struct Process {
    pub(crate) id: CallId,
    started: Instant,
    ended: Mutex<Option<Instant>>,
    status: watch::Sender<Status>,
    transcript: Mutex<Transcript>,
    /// The end of the output that the model has read.
    cursor: Mutex<Cursor>,
    progress_writer: Mutex<ProgressWriter>,
    pub(crate) bounds: SandboxBounds,
    flooded: AtomicBool,
    /// `None`: its commands have no proxy.
    pub(crate) network: Option<CallNetwork>,
    /// Keeps what is known until the result is recorded.
    pub(crate) record: Arc<CallRecord>,
}

/// State of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Status {
    /// How the command ended. `None` while it runs.
    pub(crate) end: Option<End>,
    pub(crate) output: Output,
    /// No process of the command is left.
    pub(crate) stopped: bool,
}

/// How a command ended, or why it was not started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    Exit(Exit),
    /// It could not be started.
    Failed(String),
    /// It was not started: the worker has to be replaced.
    Stale(PathBuf),
    /// The worker that ran it has ended.
    Lost,
}

/// State of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    /// More output may come.
    Open,
    /// All output before the end was read, but another process still holds the pipe open.
    HeldOpen,
    /// No more output will come.
    Closed,
}

impl Status {
    /// Whether the command has ended and its output was read.
    pub(crate) fn is_over(&self) -> bool {
        self.end.is_some() && self.output != Output::Open
    }

    /// Whether no process of the command is known to be left.
    pub(crate) fn is_gone(&self) -> bool {
        self.stopped
            || matches!(self.end, Some(End::Lost | End::Failed(_) | End::Stale(_)))
            || self.end.is_some() && self.output == Output::Closed
    }
}

impl Process {
    pub(crate) fn new(
        id: CallId,
        transcript: Transcript,
        progress: Progress,
        network: Option<CallNetwork>,
        bounds: SandboxBounds,
        record: Arc<CallRecord>,
    ) -> Self {
        let status = Status { end: None, output: Output::Open, stopped: false };
        Self {
            id,
            started: Instant::now(),
            ended: Mutex::default(),
            status: watch::Sender::new(status),
            transcript: Mutex::new(transcript),
            cursor: Mutex::default(),
            progress_writer: Mutex::new(ProgressWriter::new(progress)),
            bounds,
            flooded: AtomicBool::new(false),
            network,
            record,
        }
    }

    pub(crate) fn status(&self) -> Status {
        self.status.borrow().clone()
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Status> {
        self.status.subscribe()
    }

    /// Waits until the command has ended and its output was read.
    pub(crate) async fn over(&self) -> Status {
        self.until(Status::is_over).await
    }

    /// Waits until no process of the command is left.
    pub(crate) async fn stopped(&self) -> Status {
        self.until(|status| status.stopped || status.end == Some(End::Lost)).await
    }

    async fn until(&self, reached: impl FnMut(&Status) -> bool) -> Status {
        let mut status = self.watch();
        // This struct holds the sender, so waiting cannot fail.
        status.wait_for(reached).await.map_or_else(|_| self.status(), |status| status.clone())
    }

    /// Records the end. Only the first call has an effect.
    pub(crate) fn end(&self, end: End) {
        lock(&self.ended).get_or_insert_with(Instant::now);
        self.status.send_if_modified(|status| {
            let first = status.end.is_none();
            if first {
                // A command that was not started writes no output.
                if matches!(end, End::Failed(_) | End::Stale(_)) {
                    status.output = Output::Closed;
                }
                status.end = Some(end);
            }
            first
        });
    }

    pub(crate) fn set_output(&self, output: Output) {
        self.status
            .send_if_modified(|status| std::mem::replace(&mut status.output, output) != output);
    }

    pub(crate) fn set_stopped(&self) {
        self.status.send_modify(|status| status.stopped = true);
    }

    /// How long the command has run, or ran.
    pub(crate) fn elapsed(&self) -> Duration {
        lock(&self.ended).unwrap_or_else(Instant::now).saturating_duration_since(self.started)
    }

    /// Records that the command wrote too much.
    pub(crate) fn set_flooded(&self) {
        self.flooded.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_flooded(&self) -> bool {
        self.flooded.load(Ordering::Relaxed)
    }

    pub(crate) fn transcript(&self) -> MutexGuard<'_, Transcript> {
        lock(&self.transcript)
    }

    pub(crate) fn progress_writer(&self) -> MutexGuard<'_, ProgressWriter> {
        lock(&self.progress_writer)
    }

    /// Stops reporting progress.
    pub(crate) fn stop_progress(&self) {
        self.progress_writer().stop_progress();
    }

    /// The output since the last call.
    pub(crate) async fn new_output(self: &Arc<Self>) -> Excerpt {
        let process = Arc::clone(self);
        let read = move || process.transcript().new_output(&mut lock(&process.cursor));
        if self.transcript().is_long() {
            spawn_blocking(read).await.unwrap_or_default()
        } else {
            read()
        }
    }
}

/// Locks a mutex. Poisoning is ignored: no holder panics halfway through a change.
pub(crate) fn lock<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
