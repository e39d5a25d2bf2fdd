//! Watchers read nothing back that they can have from memory.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use antiphon_conformance::reference::{DelegatingJournal, JournalHooks, MemoryJournal};
use antiphon_core::port::{Append, Appended, ApprovalQuery, Journal, JournalError};
use antiphon_core::{Approval, Position, TaskId};
use antiphon_runtime::{ApprovalPolicy, Follower, Orchestrator, OrchestratorSettings, RuntimeDeps};
use async_trait::async_trait;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::counted_reads::{Cost, CountedReads};
use crate::flat_cost::ECHO;
use crate::world::{Careful, Counting, events, new_task, orchestrator, world};

async fn run(orchestrator: &Orchestrator) -> TaskId {
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    orchestrator.rest(&task_id).await.expect("an end");
    task_id
}

/// Reads up to the end of a task.
async fn end_of(task_id: &TaskId, follower: &mut Follower) {
    loop {
        let event = follower.next().await.expect("an event");
        if event.task_id == *task_id && event.body.ends_task() {
            return;
        }
    }
}

#[tokio::test]
async fn a_follower_of_the_journal_reads_nothing_that_is_in_memory() {
    let memory: Arc<dyn Journal> = Arc::new(MemoryJournal::new());
    let journal = CountedReads::on(&memory);
    let tools = Arc::new(Counting::default());
    let orchestrator = orchestrator(Arc::clone(&journal) as Arc<dyn Journal>, &tools, ECHO);
    let first = run(&orchestrator).await;
    let mut followers: Vec<Follower> =
        (0..10).map(|_| orchestrator.follow(None, Position(0))).collect();
    for follower in &mut followers {
        end_of(&first, follower).await;
    }
    let next = run(&orchestrator).await;
    journal.take();
    for follower in &mut followers {
        end_of(&next, follower).await;
    }
    assert_eq!(journal.take(), Cost::default());
}

/// A journal that answers one append late.
struct LateAnswer {
    inner: Arc<dyn Journal>,
    /// Ends the wait of the next append.
    until: Mutex<Option<oneshot::Receiver<()>>>,
}

#[async_trait]
impl JournalHooks for LateAnswer {
    fn inner(&self) -> &dyn Journal {
        &*self.inner
    }

    async fn append(&self, append: Append) -> Result<Appended, JournalError> {
        let appended = self.inner().append(append).await;
        let until = self.until.lock().expect("no panic").take();
        if let Some(until) = until {
            until.await.expect("a release");
        }
        appended
    }
}

#[tokio::test(start_paused = true)]
async fn a_follower_waits_for_an_append_that_is_acknowledged_late_before_it_reads() {
    let memory: Arc<dyn Journal> = Arc::new(MemoryJournal::new());
    let counted = CountedReads::on(&memory);
    let inner = Arc::clone(&counted) as Arc<dyn Journal>;
    let late = Arc::new(DelegatingJournal(LateAnswer { inner, until: Mutex::new(None) }));
    let tools = Arc::new(Counting::default());
    let orchestrator = orchestrator(Arc::clone(&late) as Arc<dyn Journal>, &tools, ECHO);
    let before = run(&orchestrator).await;
    let mut waiting = orchestrator.follow(None, Position(0));
    end_of(&before, &mut waiting).await;
    for released in [true, false] {
        let known = events(&*memory).await.len();
        let (release, until) = oneshot::channel();
        *late.0.until.lock().expect("no panic") = Some(until);
        let invoke = orchestrator.clone();
        let mut first = JoinSet::new();
        first.spawn(async move { invoke.invoke(new_task("go")).await });
        while events(&*memory).await.len() == known {
            tokio::task::yield_now().await;
        }
        let second = run(&orchestrator).await;
        counted.take();
        if released {
            let mut reading = JoinSet::new();
            reading.spawn(async move {
                end_of(&second, &mut waiting).await;
                waiting
            });
            tokio::task::yield_now().await;
            release.send(()).expect("it waits");
            waiting = reading.join_next().await.expect("it reads").expect("no panic");
            assert_eq!(counted.take(), Cost::default(), "everything was in memory");
        } else {
            // Nothing acknowledges the first append: its events come from the journal.
            end_of(&second, &mut waiting).await;
            assert!(counted.take().reads > 0);
            release.send(()).expect("it waits");
        }
        let first = first.join_next().await.expect("a task").expect("no panic");
        let first = first.expect("accepted").task_id;
        orchestrator.rest(&first).await.expect("an end");
        end_of(&first, &mut waiting).await;
    }
}

/// A journal that counts how often approvals are listed.
struct CountedApprovals {
    inner: MemoryJournal,
    lists: AtomicUsize,
    /// Approvals in these lists.
    listed: AtomicUsize,
}

#[async_trait]
impl JournalHooks for CountedApprovals {
    fn inner(&self) -> &dyn Journal {
        &self.inner
    }

    async fn approvals(&self, query: ApprovalQuery) -> Result<Vec<Approval>, JournalError> {
        let approvals = self.inner().approvals(query).await?;
        self.lists.fetch_add(1, Ordering::SeqCst);
        self.listed.fetch_add(approvals.len(), Ordering::SeqCst);
        Ok(approvals)
    }
}

/// An orchestrator whose tasks all ask before their only call.
fn asking() -> (Arc<DelegatingJournal<CountedApprovals>>, Orchestrator) {
    let (lists, listed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let journal = CountedApprovals { inner: MemoryJournal::new(), lists, listed };
    let journal = Arc::new(DelegatingJournal(journal));
    let tools = Arc::new(Counting::default());
    let script =
        "name = \"test\"\n[[reply]]\nstep = [{ call = { name = \"act\", arguments = {} } }]\n";
    let world = world(Arc::clone(&journal) as Arc<dyn Journal>, &tools, script);
    let settings = OrchestratorSettings {
        approvals: ApprovalPolicy::Wait { timeout: None },
        ..world.settings
    };
    let gate = Arc::new(Careful::default());
    (journal, Orchestrator::new(RuntimeDeps { gate, settings, ..world }))
}

#[tokio::test]
async fn what_a_task_needs_is_found_without_reading_the_approvals_of_other_tasks() {
    let (journal, orchestrator) = asking();
    let mut others = Vec::new();
    for _ in 0..50 {
        let other = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
        orchestrator.approval_needed(&other).await.expect("an approval");
        others.push(other);
    }
    journal.0.listed.store(0, Ordering::SeqCst);
    let needed = orchestrator.approval_needed(&others[49]).await.expect("an approval");
    assert_eq!(needed.task_id, others[49]);
    assert_eq!(journal.0.listed.load(Ordering::SeqCst), 1, "its own");
}

#[tokio::test]
async fn the_approvals_that_a_new_task_needs_are_listed_once_a_task_has_asked() {
    let (journal, orchestrator) = asking();
    let (accepted, mut attached) =
        orchestrator.invoke_attached(new_task("go")).await.expect("accepted");
    let requests = attached.take_approvals().expect("it is a new task");
    assert_eq!(journal.0.lists.load(Ordering::SeqCst), 0);
    let needed = orchestrator.new_approval_needed(&accepted.task_id, requests).await;
    assert_eq!(needed.expect("an approval").task_id, accepted.task_id);
    assert_eq!(journal.0.lists.load(Ordering::SeqCst), 1, "when it had asked");
    attached.detach();
}
