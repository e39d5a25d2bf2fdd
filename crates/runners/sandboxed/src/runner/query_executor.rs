//! Executes the queries of a worker.
//!
//! A page is cut to the size of one frame. An event that does not fit into a frame is a failure of
//! its own, which the worker gets.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use antiphon_core::port::{
    Append, History, JournalError, Page, Read, TaskJournal, TaskQuery, TaskSelector,
};
use antiphon_core::{Event, EventBody, Piece, Provider, ProviderError, Request, Seq, TaskSummary};
use futures_util::StreamExt;
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, mpsc};

use super::scope::Scope;
use crate::wire::{
    BATCH_PIECES_MAX, FrameError, HistoryPageWire, HistoryWire, Id, PageWire, TaskScope, ToWorker,
    encode,
};

/// Largest page of events. The worker requests the next one.
pub(super) const PAGE_EVENTS_MAX: NonZeroUsize = NonZeroUsize::new(512).unwrap();
const PAGE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Most tasks of a tree that a worker gets.
const TREE_TASKS_MAX: NonZeroUsize = NonZeroUsize::new(50_000).unwrap();

/// A message to a worker, with events that are JSON text already.
pub(super) type Message = ToWorker<Box<RawValue>>;

/// Executes queries and sends the answers.
#[derive(Clone)]
pub(super) struct QueryExecutor {
    scope: Arc<Mutex<Scope>>,
    journal: Arc<dyn TaskJournal>,
    outgoing: mpsc::Sender<Vec<u8>>,
}

impl QueryExecutor {
    pub(super) fn new(
        scope: Scope,
        journal: Arc<dyn TaskJournal>,
        outgoing: mpsc::Sender<Vec<u8>>,
    ) -> Self {
        Self { scope: Arc::new(Mutex::new(scope)), journal, outgoing }
    }

    pub(super) fn scope(&self) -> MutexGuard<'_, Scope> {
        self.scope.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends an answer, or the reason why there is none.
    async fn send(&self, message: Message, otherwise: impl FnOnce(&FrameError) -> Message) {
        let frame = encode(&message).or_else(|error| encode(&otherwise(&error)));
        if let Ok(frame) = frame {
            // Fails when the worker is gone.
            let _ = self.outgoing.send(frame).await;
        }
    }

    pub(super) async fn append(&self, id: Id, append: Append) {
        let answer = self.journal.append(append).await;
        let answer = answer.map(Into::into);
        let message = Message::Appended { id, answer };
        self.send(message, |error| Message::Appended { id, answer: Err(fault(error)) }).await;
    }

    pub(super) async fn read(&self, id: Id, read: Read, until: Seq) {
        let answer = self.journal.read(read).await.and_then(|page| self.page(page, until));
        let message = Message::Page { id, answer };
        self.send(message, |error| Message::Page { id, answer: Err(fault(error)) }).await;
    }

    /// As much of a page as fits into one frame, and at least one event.
    fn page(&self, mut page: Page, until: Seq) -> Result<PageWire<Box<RawValue>>, JournalError> {
        page.events.retain(|event| event.seq <= until);
        self.scope().note(&page.events);
        if until == Seq(1) {
            page.events.iter_mut().for_each(only_bounds);
        }
        let events = fitting(&page.events)?;
        let next = match events.len() {
            sent if sent == page.events.len() => page.next,
            sent => page.events[sent - 1].position,
        };
        Ok(PageWire { events, next, head: page.head })
    }

    pub(super) async fn history(&self, id: Id, ask: HistoryWire) {
        let HistoryWire { until, extent, skip } = ask;
        let page = |history: History| {
            let events = fitting(history.events.get(skip..).unwrap_or_default())?;
            Ok(HistoryPageWire { first: history.first, events, total: history.events.len() })
        };
        let answer = self.journal.history(until, extent.into()).await.and_then(page);
        let message = Message::History { id, answer };
        self.send(message, |error| Message::History { id, answer: Err(fault(error)) }).await;
    }

    pub(super) async fn tasks(&self, id: Id, whose: TaskScope) {
        let (own, root) = {
            let scope = self.scope();
            (scope.task_id().clone(), scope.root().clone())
        };
        let query = match whose {
            TaskScope::Own => {
                TaskQuery { which: TaskSelector::One(own.clone()), limit: NonZeroUsize::MIN }
            }
            TaskScope::Tree => TaskQuery { which: TaskSelector::Tree(root), limit: TREE_TASKS_MAX },
        };
        let blank = |task: TaskSummary| {
            if task.task_id == own {
                return task;
            }
            TaskSummary { title: String::new(), preview: None, ..task }
        };
        let answer = self.journal.tasks(query).await;
        let answer = answer.map(|tasks| tasks.into_iter().map(blank).collect());
        let message = Message::Tasks { id, answer };
        self.send(message, |error| Message::Tasks { id, answer: Err(fault(error)) }).await;
    }

    /// Streams an answer of the model, as far as the worker has granted credit.
    pub(super) async fn answer(
        &self,
        id: Id,
        provider: &dyn Provider,
        request: Request,
        credit: &Semaphore,
    ) {
        let mut chunks = provider.open(request).ready_chunks(BATCH_PIECES_MAX);
        let failure = loop {
            // Returned when the worker has read the batch. The semaphore is never closed.
            if let Ok(permit) = credit.acquire().await {
                permit.forget();
            }
            let Some(chunk) = chunks.next().await else { break None };
            let mut pieces: Vec<Piece> = Vec::with_capacity(chunk.len());
            let mut failure = None;
            for item in chunk {
                match item {
                    Ok(piece) => pieces.push(piece),
                    Err(error) => failure = Some(error),
                }
            }
            if !pieces.is_empty() {
                let too_long = |error: &FrameError| Message::End { id, failure: broken(error) };
                self.send(Message::Pieces { id, pieces }, too_long).await;
            }
            if let Some(failure) = failure {
                break Some(failure);
            }
        };
        self.send(Message::End { id, failure }, |error| Message::End {
            id,
            failure: broken(error),
        })
        .await;
    }
}

/// As many events as fit into one frame, and at least one.
fn fitting(all: &[Event]) -> Result<Vec<Box<RawValue>>, JournalError> {
    let (mut events, mut bytes) = (Vec::new(), 0);
    for event in all {
        let text = serde_json::value::to_raw_value(event).map_err(|error| {
            JournalError::Corrupt { position: event.position, reason: error.to_string() }
        })?;
        bytes += text.get().len();
        if bytes > PAGE_BYTES_MAX && !events.is_empty() {
            break;
        }
        events.push(text);
    }
    Ok(events)
}

/// Of a task above, the worker may know the limits, not the prompt.
fn only_bounds(event: &mut Event) {
    if let EventBody::TaskCreated(created) = &mut event.body {
        created.system_prompt.clear();
        created.external_tools.clear();
        created.output_schema = None;
        created.route = None;
    }
}

fn fault(error: &FrameError) -> JournalError {
    JournalError::Unavailable { reason: error.to_string() }
}

#[expect(clippy::unnecessary_wraps, reason = "it stands where an answer may have ended well")]
fn broken(error: &FrameError) -> Option<ProviderError> {
    Some(ProviderError::Protocol { message: error.to_string() })
}
