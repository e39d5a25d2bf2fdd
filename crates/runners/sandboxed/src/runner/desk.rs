//! Serves a worker: its questions to the journal and to the model, and nothing else.
//!
//! Several questions are open at a time. What a worker may not do, or does too much of, is a
//! [`Violation`]; its answer is the end of the worker.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::port::{Append, Read, Run};
use antiphon_core::{Provider, Request};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use super::clerk::{Clerk, PAGE_EVENTS_MAX};
use super::scope::{Scope, Violation};
use crate::wire::{
    AppendWire, BATCHES_MAX, FRAME_BYTES_MAX, FromWorker, Id, OutcomeWire, ReadWire, VERSION,
    decode,
};

/// Questions of a worker that are open at a time: more than it has by itself.
const OPEN_MAX: usize = 128;

/// Bytes of all these questions together.
const OPEN_BYTES_MAX: usize = 2 * FRAME_BYTES_MAX;

/// How long the journal may take for what was asked of it when a worker ended.
const FINISH_MAX: Duration = Duration::from_secs(5);

/// What a worker said that is not a question.
pub(super) enum Word {
    /// It works.
    Ready,
    /// It could not be restricted.
    Refused { reason: String },
    /// It has stopped.
    Done(OutcomeWire),
}

/// Serves one worker.
pub(super) struct Desk {
    clerk: Clerk,
    provider: Arc<dyn Provider>,
    open: HashMap<Id, Open>,
    open_bytes: usize,
    work: JoinSet<Id>,
}

struct Open {
    bytes: usize,
    abort: AbortHandle,
    /// For an answer of the model: how much of it may be sent.
    credit: Option<Arc<Semaphore>>,
}

impl Desk {
    pub(super) fn new(run: &Run, outgoing: mpsc::Sender<Vec<u8>>) -> Self {
        let scope = Scope::new(run.task_id.clone());
        Self {
            clerk: Clerk::new(scope, Arc::clone(&run.journal), outgoing),
            provider: Arc::clone(&run.provider),
            open: HashMap::new(),
            open_bytes: 0,
            work: JoinSet::new(),
        }
    }

    /// Takes what a worker says. A question is begun and answered later.
    pub(super) fn take(&mut self, body: &[u8]) -> Result<Option<Word>, Violation> {
        let bytes = body.len();
        match decode(body).map_err(|error| Violation(error.to_string()))? {
            FromWorker::Ready { version: VERSION } => return Ok(Some(Word::Ready)),
            FromWorker::Ready { version } => {
                return Err(Violation(format!("it speaks version {version}, not {VERSION}")));
            }
            FromWorker::Refused { reason } => return Ok(Some(Word::Refused { reason })),
            FromWorker::Done { outcome } => return Ok(Some(Word::Done(outcome))),
            FromWorker::Append { id, append } => self.append(id, bytes, append)?,
            FromWorker::Read { id, read } => self.read(id, bytes, read)?,
            FromWorker::Tasks { id, whose } => {
                let clerk = self.clerk.clone();
                self.begin(id, bytes, None, async move { clerk.tasks(id, whose).await })?;
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

    /// Waits until a question is answered. Never returns while none is open. Cancel safe. An error
    /// is a fault of ours.
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

    /// Ends the answers of the model, and waits for the journal: what it was told to keep is kept or
    /// not when this returns.
    pub(super) async fn finish(mut self) {
        for open in self.open.values().filter(|open| open.credit.is_some()) {
            open.abort.abort();
        }
        let last = async { while self.work.join_next().await.is_some() {} };
        // A journal that takes longer may still write it: whoever comes next finds it there.
        let _ = timeout(FINISH_MAX, last).await;
    }

    fn append(&mut self, id: Id, bytes: usize, wire: AppendWire) -> Result<(), Violation> {
        let append = Append::try_from(wire).map_err(|error| Violation(error.to_string()))?;
        self.clerk.scope().may_append(&append)?;
        let clerk = self.clerk.clone();
        self.begin(id, bytes, None, async move { clerk.append(id, append).await })
    }

    fn read(&mut self, id: Id, bytes: usize, wire: ReadWire) -> Result<(), Violation> {
        let until = self.clerk.scope().may_read(&wire.task_id)?;
        let limit = wire.limit.min(PAGE_EVENTS_MAX);
        let read = Read::from(ReadWire { limit, ..wire });
        let clerk = self.clerk.clone();
        self.begin(id, bytes, None, async move { clerk.read(id, read, until).await })
    }

    fn ask(&mut self, id: Id, bytes: usize, request: Request) -> Result<(), Violation> {
        self.clerk.scope().may_ask(&request)?;
        let credit = Arc::new(Semaphore::new(BATCHES_MAX));
        let (clerk, provider, given) =
            (self.clerk.clone(), Arc::clone(&self.provider), Arc::clone(&credit));
        self.begin(id, bytes, Some(credit), async move {
            clerk.answer(id, &*provider, request, &given).await;
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
