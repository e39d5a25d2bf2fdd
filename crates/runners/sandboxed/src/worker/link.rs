//! The worker's end of the socket.
//!
//! One future reads and dispatches frames, another writes. When the runner is gone, every pending
//! query fails, and every later one fails at once.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use antiphon_core::port::RunnerError;
use antiphon_core::{Event, Piece, ProviderError, TaskId};
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinSet;

use crate::wire::{
    BATCHES_MAX, FrameError, FromWorker, Id, ToWorker, VERSION, decode, encode, receive,
};

/// Most pending queries to the journal, and as many to the model. Further ones wait.
pub(crate) const QUERIES_MAX: usize = 32;

/// Most frames that wait to be written. Further senders wait.
const OUTGOING_MAX: usize = 64;

/// A part of an answer of the model.
#[derive(Debug)]
pub(super) enum Batch {
    Pieces(Vec<Piece>),
    End(Option<ProviderError>),
}

/// The task to work on.
pub(super) struct Hello {
    pub(super) task_id: TaskId,
    pub(super) settings: Value,
}

/// Why a query could not be sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkError {
    /// The runner is gone.
    #[error("the runner is gone")]
    Gone,
    /// The query is too long, or cannot be encoded.
    #[error(transparent)]
    Frame(#[from] FrameError),
}

/// The worker's end of the socket.
pub(super) struct Link {
    outgoing: mpsc::Sender<Vec<u8>>,
    next: AtomicU64,
    waiting: Mutex<Waiting>,
    signals: watch::Sender<Signals>,
    questions: Semaphore,
    pub(super) streams: Arc<Semaphore>,
}

#[derive(Default)]
struct Waiting {
    questions: HashMap<Id, oneshot::Sender<ToWorker<Event>>>,
    streams: HashMap<Id, mpsc::Sender<Batch>>,
}

#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "one for each signal")]
struct Signals {
    cancel: bool,
    interrupt: bool,
    rest: bool,
    gone: bool,
}

impl Link {
    /// Receives the task and reports that the worker is ready. The reading and writing futures are
    /// spawned on `keepers`.
    pub(super) async fn open(
        socket: UnixStream,
        keepers: &mut JoinSet<()>,
    ) -> io::Result<(Arc<Self>, Hello)> {
        let (mut reader, writer) = socket.into_split();
        let body = receive(&mut reader).await.map_err(io::Error::other)?;
        let body = body.ok_or(io::ErrorKind::UnexpectedEof)?;
        let supervisor: ToWorker<Event> = decode(&body).map_err(io::Error::other)?;
        let ToWorker::Hello { version: VERSION, task_id, settings } = supervisor else {
            return Err(io::Error::other("the runner is of another version than its worker"));
        };
        let (outgoing, frames) = mpsc::channel(OUTGOING_MAX);
        let link = Arc::new(Self {
            outgoing,
            next: AtomicU64::new(0),
            waiting: Mutex::default(),
            signals: watch::Sender::default(),
            questions: Semaphore::new(QUERIES_MAX),
            streams: Arc::new(Semaphore::new(QUERIES_MAX)),
        });
        keepers.spawn(write(writer, frames));
        keepers.spawn(Arc::clone(&link).listen(reader));
        let ready = FromWorker::Ready { version: VERSION };
        link.say(&ready).await.map_err(io::Error::other)?;
        Ok((link, Hello { task_id, settings }))
    }

    /// Sends a query and waits for the answer.
    pub(super) async fn ask(
        &self,
        question: impl FnOnce(Id) -> FromWorker,
    ) -> Result<ToWorker<Event>, LinkError> {
        let _permit = self.questions.acquire().await.map_err(|_| LinkError::Gone)?;
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        self.waiting().questions.insert(id, sender);
        let sent = self.say(&question(id)).await;
        if sent.is_err() {
            self.waiting().questions.remove(&id);
        }
        sent?;
        answer.await.map_err(|_| LinkError::Gone)
    }

    /// Registers an answer of the model: its id, and its batches.
    pub(super) fn listen_to(&self) -> (Id, mpsc::Receiver<Batch>) {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        // The batches that may be in flight, and the end.
        let (sender, batches) = mpsc::channel(BATCHES_MAX + 1);
        self.waiting().streams.insert(id, sender);
        (id, batches)
    }

    /// Drops an answer whose reader is gone.
    pub(super) fn forget(&self, id: Id) {
        let was_there = self.waiting().streams.remove(&id).is_some();
        if was_there && let Ok(frame) = encode(&FromWorker::Close { id }) {
            // If it cannot be sent, the answer continues unread until its end.
            let _ = self.outgoing.try_send(frame);
        }
    }

    /// Sends a message.
    pub(super) async fn say(&self, message: &FromWorker) -> Result<(), LinkError> {
        if self.signals.borrow().gone {
            return Err(LinkError::Gone);
        }
        self.outgoing.send(encode(message)?).await.map_err(|_| LinkError::Gone)
    }

    /// Reports the end of the work.
    pub(super) async fn done(&self, outcome: Result<(), RunnerError>) {
        // Fails when the runner is gone, and then no report is needed.
        let _ = self.say(&FromWorker::Done { outcome: outcome.into() }).await;
    }

    pub(super) async fn canceled(self: Arc<Self>) {
        self.until(|signals| signals.cancel).await;
    }

    pub(super) async fn interrupted(self: Arc<Self>) {
        self.until(|signals| signals.interrupt).await;
    }

    pub(super) async fn resting(self: Arc<Self>) {
        self.until(|signals| signals.rest).await;
    }

    /// Returns when the runner is gone.
    pub(super) async fn gone(&self) {
        self.until(|signals| signals.gone).await;
    }

    async fn until(&self, happened: impl Fn(&Signals) -> bool) {
        // This struct owns the sender, so waiting cannot fail.
        let _ = self.signals.subscribe().wait_for(happened).await;
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn listen(self: Arc<Self>, mut reader: OwnedReadHalf) {
        // An invalid frame ends the connection too: nothing after it can be trusted.
        while let Ok(Some(body)) = receive(&mut reader).await {
            match decode(&body) {
                Ok(message) => self.pass_on(message),
                Err(_) => break,
            }
        }
        self.signals.send_modify(|signals| signals.gone = true);
        *self.waiting() = Waiting::default();
    }

    fn pass_on(&self, message: ToWorker<Event>) {
        match message {
            ToWorker::Appended { id, .. }
            | ToWorker::Page { id, .. }
            | ToWorker::History { id, .. }
            | ToWorker::Tasks { id, .. } => {
                let sender = self.waiting().questions.remove(&id);
                if let Some(sender) = sender {
                    // The sender of the query may have stopped waiting.
                    let _ = sender.send(message);
                }
            }
            ToWorker::Pieces { id, pieces } => self.pass_batch(id, Batch::Pieces(pieces)),
            ToWorker::End { id, failure } => {
                self.pass_batch(id, Batch::End(failure));
                self.waiting().streams.remove(&id);
            }
            ToWorker::Cancel {} => self.signals.send_modify(|signals| signals.cancel = true),
            ToWorker::Interrupt {} => self.signals.send_modify(|signals| signals.interrupt = true),
            ToWorker::Rest {} => self.signals.send_modify(|signals| signals.rest = true),
            ToWorker::Hello { .. } => {}
        }
    }

    fn pass_batch(&self, id: Id, batch: Batch) {
        // The channel has capacity for all batches in flight.
        if let Some(stream) = self.waiting().streams.get(&id) {
            let _ = stream.try_send(batch);
        }
    }
}

async fn write(mut writer: OwnedWriteHalf, mut frames: mpsc::Receiver<Vec<u8>>) {
    while let Some(frame) = frames.recv().await {
        if writer.write_all(&frame).await.is_err() {
            return;
        }
    }
}
