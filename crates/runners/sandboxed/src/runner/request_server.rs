//! Serves the requests of a worker to the journal and to the model, and no others.
//!
//! Several requests are pending at a time. A request that is not allowed, or exceeds a limit, is a
//! [`Violation`] and ends the worker.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::port::{Append, Read, RunnerTask};
use antiphon_core::{Provider, Request};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use super::query_executor::{PAGE_EVENTS_MAX, QueryExecutor};
use super::scope::{Scope, Violation};
use crate::wire::{
    AppendWire, BATCHES_MAX, FRAME_BYTES_MAX, FromWorker, Id, OutcomeWire, ReadWire, VERSION,
    decode,
};

/// Most pending requests of a worker: more than it sends by itself.
const OPEN_MAX: usize = 128;

/// Most bytes of these requests together.
const OPEN_BYTES_MAX: usize = 2 * FRAME_BYTES_MAX;

/// How long pending journal requests may take when a worker has ended.
const FINISH_MAX: Duration = Duration::from_secs(5);

/// A message of a worker that is not a request.
pub(super) enum WorkerMessage {
    /// It started.
    Ready,
    /// It could not be restricted.
    Refused { reason: String },
    /// It has stopped.
    Done(OutcomeWire),
}

/// Serves one worker.
pub(super) struct RequestServer {
    executor: QueryExecutor,
    provider: Arc<dyn Provider>,
    open: HashMap<Id, Open>,
    open_bytes: usize,
    work: JoinSet<Id>,
}

struct Open {
    bytes: usize,
    abort: AbortHandle,
    /// For an answer of the model: how many batches may be sent.
    credit: Option<Arc<Semaphore>>,
}

impl RequestServer {
    pub(super) fn new(run: &RunnerTask, outgoing: mpsc::Sender<Vec<u8>>) -> Self {
        let scope = Scope::new(run.task_id.clone());
        Self {
            executor: QueryExecutor::new(scope, Arc::clone(&run.journal), outgoing),
            provider: Arc::clone(&run.provider),
            open: HashMap::new(),
            open_bytes: 0,
            work: JoinSet::new(),
        }
    }

    /// Handles a frame of a worker. A request is started and answered later.
    pub(super) fn take(&mut self, body: &[u8]) -> Result<Option<WorkerMessage>, Violation> {
        let bytes = body.len();
        match decode(body).map_err(|error| Violation(error.to_string()))? {
            FromWorker::Ready { version: VERSION } => return Ok(Some(WorkerMessage::Ready)),
            FromWorker::Ready { version } => {
                return Err(Violation(format!("it speaks version {version}, not {VERSION}")));
            }
            FromWorker::Refused { reason } => return Ok(Some(WorkerMessage::Refused { reason })),
            FromWorker::Done { outcome } => return Ok(Some(WorkerMessage::Done(outcome))),
            FromWorker::Append { id, append } => self.append(id, bytes, append)?,
            FromWorker::Read { id, read } => self.read(id, bytes, read)?,
            FromWorker::History { id, ask } => {
                self.executor.scope().may_read_history(&ask.until)?;
                let executor = self.executor.clone();
                self.begin(id, bytes, None, async move { executor.history(id, ask).await })?;
            }
            FromWorker::Tasks { id, whose } => {
                let executor = self.executor.clone();
                self.begin(id, bytes, None, async move { executor.tasks(id, whose).await })?;
            }
            FromWorker::Open { id, request } => self.ask(id, bytes, *request)?,
            FromWorker::More { id } => self.more(id)?,
            FromWorker::Close { id } => {
                if let Some(open) = self.close(id) {
                    open.abort.abort();
                }
            }
        }
        Ok(None)
    }

    /// Waits until a request is answered. Never returns while none is pending. Cancel safe. The
    /// error is an internal error.
    pub(super) async fn settle(&mut self) -> Result<(), String> {
        match self.work.join_next().await {
            None => std::future::pending().await,
            Some(Ok(id)) => {
                self.close(id);
                Ok(())
            }
            Some(Err(error)) if error.is_cancelled() => Ok(()),
            Some(Err(error)) => Err(error.to_string()),
        }
    }

    /// Aborts the answers of the model and waits for the journal: afterwards every append is either
    /// recorded or not.
    pub(super) async fn finish(mut self) {
        for open in self.open.values().filter(|open| open.credit.is_some()) {
            open.abort.abort();
        }
        let last = async { while self.work.join_next().await.is_some() {} };
        // A slower journal may still record it: the next reader finds it there.
        let _ = timeout(FINISH_MAX, last).await;
    }

    fn append(&mut self, id: Id, bytes: usize, wire: AppendWire) -> Result<(), Violation> {
        let append = Append::try_from(wire).map_err(|error| Violation(error.to_string()))?;
        self.executor.scope().may_append(&append)?;
        let executor = self.executor.clone();
        self.begin(id, bytes, None, async move { executor.append(id, append).await })
    }

    fn read(&mut self, id: Id, bytes: usize, wire: ReadWire) -> Result<(), Violation> {
        let until = self.executor.scope().may_read(&wire.task_id)?;
        let limit = wire.limit.min(PAGE_EVENTS_MAX);
        let read = Read::from(ReadWire { limit, ..wire });
        let executor = self.executor.clone();
        self.begin(id, bytes, None, async move { executor.read(id, read, until).await })
    }

    fn ask(&mut self, id: Id, bytes: usize, request: Request) -> Result<(), Violation> {
        self.executor.scope().may_ask(&request)?;
        let credit = Arc::new(Semaphore::new(BATCHES_MAX));
        let (executor, provider, given) =
            (self.executor.clone(), Arc::clone(&self.provider), Arc::clone(&credit));
        self.begin(id, bytes, Some(credit), async move {
            executor.answer(id, &*provider, request, &given).await;
        })
    }

    fn more(&mut self, id: Id) -> Result<(), Violation> {
        // It may have ended meanwhile.
        let Some(credit) = self.open.get(&id).and_then(|open| open.credit.as_ref()) else {
            return Ok(());
        };
        if credit.available_permits() >= BATCHES_MAX {
            return Err(Violation("it has read more of an answer than there was".to_owned()));
        }
        credit.add_permits(1);
        Ok(())
    }

    fn begin(
        &mut self,
        id: Id,
        bytes: usize,
        credit: Option<Arc<Semaphore>>,
        answer: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), Violation> {
        while let Some(Ok(done)) = self.work.try_join_next() {
            self.close(done);
        }
        if self.open.len() >= OPEN_MAX || self.open_bytes + bytes > OPEN_BYTES_MAX {
            return Err(Violation(format!(
                "it asked more than {OPEN_MAX} questions, or {OPEN_BYTES_MAX} bytes, at a time"
            )));
        }
        if self.open.contains_key(&id) {
            return Err(Violation(format!("it asked question {id} twice")));
        }
        let abort = self.work.spawn(async move {
            answer.await;
            id
        });
        self.open.insert(id, Open { bytes, abort, credit });
        self.open_bytes += bytes;
        Ok(())
    }

    fn close(&mut self, id: Id) -> Option<Open> {
        let open = self.open.remove(&id)?;
        self.open_bytes -= open.bytes;
        Some(open)
    }
}
