//! The first model request of a task leaves while its creation is written, and nothing else does.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use antiphon_conformance::reference::{DelegatingJournal, JournalHooks, MemoryJournal};
use antiphon_core::port::{Append, Appended, IdempotencyKey, Journal, JournalError, PieceSource};
use antiphon_core::{
    HistoryRef, ModelRef, Piece, Provider, ProviderError, RawJson, Request, TaskStatus,
    ToolExecutor,
};
use antiphon_runtime::{
    Budget, Models, NewTask, Orchestrator, PriorHistory, RuntimeConfig, RuntimeDeps,
};
use antiphon_scripted::{Script, ScriptedProvider};
use async_trait::async_trait;
use futures_util::Stream;
use tokio::sync::{Semaphore, watch};

use crate::budget::{budget, prices};
use crate::world::{Counting, events, new_task, world};

const CALL: &str = r#"
name = "test"
[[reply]]
when = { turn = 0 }
step = [{ call = { name = "act", arguments = { on = "a" } } }]
[[reply]]
step = [{ text = "Done." }]
"#;

/// What became of the requests to the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Requests {
    sent: usize,
    /// Those that were dropped before their end.
    canceled: usize,
}

/// A scripted model that counts its requests.
struct Counted {
    script: Script,
    requests: watch::Sender<Requests>,
}

impl Models for Counted {
    fn provider(
        &self,
        _: &ModelRef,
        _: &[ModelRef],
        _: Option<&RawJson>,
    ) -> Result<Arc<dyn Provider>, String> {
        let (script, requests) = (self.script.clone(), self.requests.clone());
        Ok(Arc::new(CountedProvider { inner: ScriptedProvider::new(script), requests }))
    }

    fn window_tokens(&self, _: &ModelRef) -> Option<u64> {
        None
    }
}

struct CountedProvider {
    inner: ScriptedProvider,
    requests: watch::Sender<Requests>,
}

impl Provider for CountedProvider {
    fn open(&self, request: Request) -> PieceSource {
        let (inner, requests) = (self.inner.open(request), self.requests.clone());
        Box::pin(CountedSource { inner, requests, is_sent: false, is_over: false })
    }
}

struct CountedSource {
    inner: PieceSource,
    requests: watch::Sender<Requests>,
    is_sent: bool,
    is_over: bool,
}

impl Stream for CountedSource {
    type Item = Result<Piece, ProviderError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if !std::mem::replace(&mut self.is_sent, true) {
            self.requests.send_modify(|requests| requests.sent += 1);
        }
        let next = self.inner.as_mut().poll_next(cx);
        self.is_over |= matches!(next, Poll::Ready(None | Some(Ok(Piece::Done) | Err(_))));
        next
    }
}

impl Drop for CountedSource {
    fn drop(&mut self) {
        if self.is_sent && !self.is_over {
            self.requests.send_modify(|requests| requests.canceled += 1);
        }
    }
}

/// A journal whose appends wait until the test lets them through, or fails them.
struct Gated {
    inner: MemoryJournal,
    gate: Semaphore,
    appends: AtomicUsize,
    /// Looks for the answer of a key wait for it.
    keys: Semaphore,
    /// The first append waits until another one is written.
    first_is_late: AtomicBool,
    written: watch::Sender<usize>,
}

#[async_trait]
impl JournalHooks for Gated {
    fn inner(&self) -> &dyn Journal {
        &self.inner
    }

    async fn append(&self, append: Append) -> Result<Appended, JournalError> {
        let number = self.appends.fetch_add(1, Ordering::SeqCst);
        match self.gate.acquire().await {
            Ok(permit) => permit.forget(),
            Err(_) => return Err(JournalError::Unavailable { reason: "full".to_owned() }),
        }
        if number == 0 && self.first_is_late.load(Ordering::SeqCst) {
            let mut written = self.written.subscribe();
            let _ = written.wait_for(|written| *written > 0).await;
        }
        let appended = self.inner().append(append).await;
        self.written.send_modify(|written| *written += 1);
        appended
    }

    async fn answered(&self, key: &IdempotencyKey) -> Result<Option<Appended>, JournalError> {
        let _passed = self.keys.acquire().await;
        self.inner().answered(key).await
    }
}

struct Bench {
    journal: Arc<DelegatingJournal<Gated>>,
    tools: Arc<Counting>,
    requests: watch::Sender<Requests>,
    orchestrator: Orchestrator,
}

impl Bench {
    fn new(budget: Budget) -> Self {
        let gated = Gated {
            inner: MemoryJournal::new(),
            gate: Semaphore::new(0),
            appends: AtomicUsize::new(0),
            keys: Semaphore::new(1),
            first_is_late: AtomicBool::new(false),
            written: watch::Sender::default(),
        };
        let journal = Arc::new(DelegatingJournal(gated));
        let (tools, requests) = (Arc::new(Counting::default()), watch::Sender::default());
        let orchestrator = orchestrator(&journal, &tools, &requests, budget);
        Self { journal, tools, requests, orchestrator }
    }

    /// The next process on the same journal.
    async fn restarted(&self) -> Orchestrator {
        assert!(self.orchestrator.shutdown(Duration::from_secs(5)).await, "no run is left");
        let next = orchestrator(&self.journal, &self.tools, &self.requests, Budget::default());
        next.recover().await.expect("recovered");
        next
    }

    fn gated(&self) -> &Gated {
        &self.journal.0
    }

    async fn until(&self, reached: Requests) {
        let mut requests = self.requests.subscribe();
        let until = requests.wait_for(|requests| *requests == reached);
        let found = tokio::time::timeout(Duration::from_secs(5), until).await;
        let now = *self.requests.borrow();
        assert!(found.is_ok(), "{now:?} instead of {reached:?}");
    }

    /// Lets everything run that can.
    async fn settle(&self) {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }
}

fn orchestrator(
    journal: &Arc<DelegatingJournal<Gated>>,
    tools: &Arc<Counting>,
    requests: &watch::Sender<Requests>,
    budget: Budget,
) -> Orchestrator {
    let script = Script::parse(CALL).expect("a script");
    let deps = RuntimeDeps {
        models: Arc::new(Counted { script, requests: requests.clone() }),
        prices: prices(),
        tools: Arc::clone(tools) as Arc<dyn ToolExecutor>,
        ..world(journal.clone(), tools, CALL)
    };
    Orchestrator::new(RuntimeConfig { deps, budget })
}

fn sent(sent: usize) -> Requests {
    Requests { sent, canceled: 0 }
}

#[tokio::test]
async fn the_first_request_leaves_while_the_creation_is_written_and_nothing_else_does() {
    let bench = Bench::new(Budget::default());
    let mut deltas = bench.orchestrator.deltas();
    let mut invoked = Box::pin(bench.orchestrator.invoke(new_task("go")));
    tokio::select! {
        _ = &mut invoked => panic!("accepted before it was durable"),
        () = bench.until(sent(1)) => {}
    }
    tokio::select! {
        _ = &mut invoked => panic!("accepted before it was durable"),
        () = bench.settle() => {}
    }
    assert_eq!(*bench.requests.borrow(), sent(1), "the script had its time to answer");
    assert!(deltas.try_recv().is_none(), "a delta was seen");
    assert_eq!(bench.gated().appends.load(Ordering::SeqCst), 1, "only the creation");
    assert!(bench.tools.done().is_empty(), "a tool ran");
    // The creation is durable; the answer with the start of its call is not.
    bench.gated().gate.add_permits(1);
    let task_id = invoked.await.expect("accepted").task_id;
    assert!(deltas.recv().await.is_some());
    bench.settle().await;
    assert!(bench.tools.done().is_empty(), "a tool ran before its start was durable");
    bench.gated().gate.add_permits(100);
    let state = bench.orchestrator.wait(&task_id).await.expect("an end");
    assert_eq!(state.status, TaskStatus::Completed);
    assert_eq!(*bench.requests.borrow(), sent(2), "each request was sent once");
}

#[tokio::test]
async fn a_creation_that_fails_cancels_the_request_and_leaves_no_task() {
    let bench = Bench::new(Budget::default());
    let mut deltas = bench.orchestrator.deltas();
    let mut invoked = Box::pin(bench.orchestrator.invoke(new_task("go")));
    tokio::select! {
        _ = &mut invoked => panic!("accepted before it was durable"),
        () = bench.until(sent(1)) => {}
    }
    bench.gated().gate.close();
    assert!(invoked.await.is_err());
    bench.until(Requests { sent: 1, canceled: 1 }).await;
    assert!(deltas.try_recv().is_none(), "a delta was seen");
    assert!(events(&bench.gated().inner).await.is_empty());
    assert_eq!(bench.gated().appends.load(Ordering::SeqCst), 1, "nothing else was written");
    assert!(bench.orchestrator.shutdown(Duration::from_secs(5)).await, "no run is left");
    assert!(!bench.orchestrator.is_working());
}

async fn waits_for_its_creation(budget: Budget, task: NewTask) {
    let bench = Bench::new(budget);
    let mut invoked = Box::pin(bench.orchestrator.invoke(task));
    tokio::select! {
        _ = &mut invoked => panic!("accepted before it was durable"),
        () = bench.settle() => {}
    }
    assert_eq!(bench.gated().appends.load(Ordering::SeqCst), 1);
    assert_eq!(*bench.requests.borrow(), sent(0));
    bench.gated().gate.add_permits(100);
    let task_id = invoked.await.expect("accepted").task_id;
    assert!(bench.orchestrator.wait(&task_id).await.is_ok());
    assert_eq!(*bench.requests.borrow(), sent(2));
}

#[tokio::test]
async fn under_a_spend_limit_the_first_request_waits_for_the_creation() {
    waits_for_its_creation(budget(1_000_000_000), new_task("go")).await;
}

fn keyed(key: &str) -> NewTask {
    NewTask { key: Some(IdempotencyKey(key.to_owned())), ..new_task("go") }
}

#[tokio::test]
async fn with_a_new_key_the_first_request_leaves_and_with_a_repeated_one_none_does() {
    let bench = Bench::new(Budget::default());
    let mut invoked = Box::pin(bench.orchestrator.invoke(keyed("k")));
    tokio::select! {
        _ = &mut invoked => panic!("accepted before it was durable"),
        () = bench.until(sent(1)) => {}
    }
    bench.gated().gate.add_permits(100);
    let first = invoked.await.expect("accepted");
    bench.orchestrator.wait(&first.task_id).await.expect("an end");
    assert_eq!(*bench.requests.borrow(), sent(2));
    let again = bench.orchestrator.invoke(keyed("k")).await.expect("the same answer");
    assert_eq!((again.task_id, again.deduplicated), (first.task_id, true));
    bench.settle().await;
    assert_eq!(*bench.requests.borrow(), sent(2), "a repeated one asks no model");
}

#[tokio::test]
async fn of_two_creations_with_one_key_at_a_time_one_sends_its_request() {
    let bench = Bench::new(Budget::default());
    let mut first = Box::pin(bench.orchestrator.invoke(keyed("k")));
    let mut second = Box::pin(bench.orchestrator.invoke(keyed("k")));
    tokio::select! {
        _ = &mut first => panic!("accepted before it was durable"),
        _ = &mut second => panic!("accepted before it was durable"),
        () = async { bench.until(sent(1)).await; bench.settle().await } => {}
    }
    assert_eq!(*bench.requests.borrow(), sent(1));
    bench.gated().gate.add_permits(100);
    let (first, second) = tokio::join!(first, second);
    let (first, second) = (first.expect("accepted"), second.expect("accepted"));
    assert_eq!((&first.task_id, second.deduplicated), (&second.task_id, !first.deduplicated));
    bench.orchestrator.wait(&first.task_id).await.expect("an end");
    assert_eq!(*bench.requests.borrow(), sent(2));
}

#[tokio::test]
async fn a_creation_with_a_key_that_fails_cancels_its_request() {
    let bench = Bench::new(Budget::default());
    let mut invoked = Box::pin(bench.orchestrator.invoke(keyed("k")));
    tokio::select! {
        _ = &mut invoked => panic!("accepted before it was durable"),
        () = bench.until(sent(1)) => {}
    }
    bench.gated().gate.close();
    assert!(invoked.await.is_err());
    bench.until(Requests { sent: 1, canceled: 1 }).await;
    assert!(events(&bench.gated().inner).await.is_empty());
}

#[tokio::test]
async fn of_two_creations_with_one_key_the_later_one_may_be_the_first_in_the_journal() {
    let bench = Bench::new(Budget::default());
    bench.gated().first_is_late.store(true, Ordering::SeqCst);
    let looks = bench.gated().keys.acquire().await.expect("it is open");
    let mut first = Box::pin(bench.orchestrator.invoke(keyed("k")));
    let mut second = Box::pin(bench.orchestrator.invoke(keyed("k")));
    tokio::select! {
        _ = &mut first => panic!("accepted before it was durable"),
        () = bench.settle() => {}
    }
    tokio::select! {
        _ = &mut second => panic!("accepted before it was durable"),
        () = bench.settle() => {}
    }
    drop(looks);
    tokio::select! {
        _ = &mut first => panic!("accepted before it was durable"),
        _ = &mut second => panic!("accepted before it was durable"),
        () = bench.settle() => {}
    }
    assert_eq!(*bench.requests.borrow(), sent(0), "either may be the repeated one");
    bench.gated().gate.add_permits(100);
    let (first, second) = tokio::join!(first, second);
    let (first, second) = (first.expect("accepted"), second.expect("accepted"));
    assert_eq!(first.task_id, second.task_id);
    assert!(first.deduplicated && !second.deduplicated);
    bench.orchestrator.wait(&first.task_id).await.expect("an end");
    assert_eq!(*bench.requests.borrow(), sent(2), "no request was sent in vain");
}

#[tokio::test]
async fn a_key_answers_in_the_next_process_and_when_the_task_before_it_is_continued() {
    let bench = Bench::new(Budget::default());
    bench.gated().gate.add_permits(1_000);
    let first = bench.orchestrator.invoke(keyed("k")).await.expect("accepted");
    bench.orchestrator.wait(&first.task_id).await.expect("an end");
    assert_eq!(*bench.requests.borrow(), sent(2));
    // The same request again, now behind the task that answered it.
    let until = bench.orchestrator.task(&first.task_id).await.expect("a task");
    let behind = HistoryRef { task_id: first.task_id.clone(), seq: until.seq };
    let before = PriorHistory::Task(behind);
    let fork = |key| NewTask { before: before.clone(), ..keyed(key) };
    let again = bench.orchestrator.invoke(fork("k")).await.expect("the same answer");
    assert_eq!((&again.task_id, again.deduplicated), (&first.task_id, true));
    // A fork with a key of its own leaves early, and once.
    let other = bench.orchestrator.invoke(fork("fork")).await.expect("accepted");
    assert!(!other.deduplicated);
    bench.orchestrator.wait(&other.task_id).await.expect("an end");
    let all = *bench.requests.borrow();
    let next = bench.restarted().await;
    for task in [keyed("k"), fork("k"), keyed("fork")] {
        assert!(next.invoke(task).await.expect("the same answer").deduplicated);
    }
    bench.settle().await;
    assert_eq!(*bench.requests.borrow(), all, "a repeated one asks no model");
}
