//! One command: what it has said, whether it runs, how it ended.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use antiphon_core::port::Progress;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use crate::live::Live;
use crate::message::{CallId, Exit};
use crate::transcript::{Cursor, Excerpt, Transcript};

/// One command.
pub(crate) struct Process {
    pub(crate) id: CallId,
    started: Instant,
    ended: Mutex<Option<Instant>>,
    status: watch::Sender<Status>,
    transcript: Mutex<Transcript>,
    /// Up to where the model has read.
    cursor: Mutex<Cursor>,
    live: Mutex<Live>,
    flooded: AtomicBool,
}

/// Where a command stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Status {
    /// How it ended.
    pub(crate) end: Option<End>,
    pub(crate) output: Output,
    /// Nothing of it is left.
    pub(crate) stopped: bool,
}

/// How a command ended, or why it did not begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    Exit(Exit),
    /// It could not be started.
    Failed(String),
    /// It was not started: the worker has to be replaced.
    Stale(PathBuf),
    /// The worker that ran it is gone.
    Lost,
}

/// What is known of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    /// More may come.
    Open,
    /// All that was written before the end was read, but somebody still holds it.
    Held,
    /// Nothing more will come.
    Closed,
}

impl Status {
    /// The command has ended and all it said was read.
    pub(crate) fn is_over(&self) -> bool {
        self.end.is_some() && self.output != Output::Open
    }

    /// Nothing of it is left, as far as one can see.
    pub(crate) fn is_gone(&self) -> bool {
        self.stopped
            || matches!(self.end, Some(End::Lost | End::Failed(_) | End::Stale(_)))
            || self.end.is_some() && self.output == Output::Closed
    }
}

impl Process {
    pub(crate) fn new(id: CallId, transcript: Transcript, progress: Progress) -> Self {
        let status = Status { end: None, output: Output::Open, stopped: false };
        Self {
            id,
            started: Instant::now(),
            ended: Mutex::default(),
            status: watch::Sender::new(status),
            transcript: Mutex::new(transcript),
            cursor: Mutex::default(),
            live: Mutex::new(Live::new(progress)),
            flooded: AtomicBool::new(false),
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

    /// Waits until nothing of the command is left.
    pub(crate) async fn stopped(&self) -> Status {
        self.until(|status| status.stopped || status.end == Some(End::Lost)).await
    }

    async fn until(&self, reached: impl FnMut(&Status) -> bool) -> Status {
        let mut status = self.watch();
        // We hold the sender, so it cannot be gone.
        status.wait_for(reached).await.map_or_else(|_| self.status(), |status| status.clone())
    }

    /// The first end counts.
    pub(crate) fn end(&self, end: End) {
        hold(&self.ended).get_or_insert_with(Instant::now);
        self.status.send_if_modified(|status| {
            let first = status.end.is_none();
            if first {
                // What was not started writes nothing.
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

    /// How long it has run.
    pub(crate) fn took(&self) -> Duration {
        hold(&self.ended).unwrap_or_else(Instant::now).saturating_duration_since(self.started)
    }

    /// It wrote too much.
    pub(crate) fn set_flooded(&self) {
        self.flooded.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_flooded(&self) -> bool {
        self.flooded.load(Ordering::Relaxed)
    }

    pub(crate) fn transcript(&self) -> MutexGuard<'_, Transcript> {
        hold(&self.transcript)
    }

    pub(crate) fn live(&self) -> MutexGuard<'_, Live> {
        hold(&self.live)
    }

    /// From now on nobody listens.
    pub(crate) fn hush(&self) {
        self.live().hush();
    }

    /// What it has said since it was last asked.
    pub(crate) async fn news(self: &Arc<Self>) -> Excerpt {
        let process = Arc::clone(self);
        let read = move || process.transcript().news(&mut hold(&process.cursor));
        if self.transcript().is_long() {
            spawn_blocking(read).await.unwrap_or_default()
        } else {
            read()
        }
    }
}

/// A lock whose holders do not panic halfway through a change.
pub(crate) fn hold<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
