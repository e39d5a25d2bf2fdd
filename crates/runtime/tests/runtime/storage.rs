//! A journal that takes no events for a while: tasks wait, go on by themselves, and do nothing twice.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use antiphon_conformance::reference::{DelegatingJournal, JournalHooks, MemoryJournal};
use antiphon_core::port::{
    Append, AppendFault, Appended, Journal, JournalError, Read, TaskQuery, TaskSelector,
};
use antiphon_core::{EventBody, Message, TaskStatus, WaitingFor};
use antiphon_runtime::{
    Orchestrator, OrchestratorError, OrchestratorSettings, RuntimeDeps, TaskState,
};
use async_trait::async_trait;

use crate::world::{Counting, Death, events, new_task, world};

const STEPS: &str = r#"
name = "test"
[[reply]]
when = { turn = 0 }
step = [
    { call = { name = "act", arguments = { on = "a" } } },
    { call = { name = "act", arguments = { on = "b" } } },
]
[[reply]]
when = { turn = 1 }
step = [
    { call = { name = "look", arguments = { at = "a" } } },
    { call = { name = "act", arguments = { on = "c" } } },
]
[[reply]]
step = [{ text = "Done." }]
"#;

/// A disk that is full from its `nth` append on, until it is emptied.
struct FullDisk {
    inner: Arc<MemoryJournal>,
    nth: usize,
    appends: AtomicUsize,
    emptied: AtomicBool,
    /// Whether an append that is answered with an error is stored, the first time.
    death: Death,
    stored: AtomicBool,
    /// Whether reads fail too.
    reads_fail: bool,
}

impl FullDisk {
    fn new(nth: usize, death: Death, reads_fail: bool) -> Arc<DelegatingJournal<Self>> {
        Arc::new(DelegatingJournal(Self {
            inner: Arc::new(MemoryJournal::new()),
            nth,
            appends: AtomicUsize::new(0),
            emptied: AtomicBool::new(false),
            death,
            stored: AtomicBool::new(false),
            reads_fail,
        }))
    }

    fn fill(&self) {
        self.appends.store(usize::MAX - 1000, Ordering::SeqCst);
    }

    fn empty(&self) {
        self.emptied.store(true, Ordering::SeqCst);
    }

    fn is_full(&self) -> bool {
        self.appends.load(Ordering::SeqCst) > self.nth && !self.emptied.load(Ordering::SeqCst)
    }
}

fn full() -> String {
    "database or disk is full".to_owned()
}

#[async_trait]
impl JournalHooks for FullDisk {
    fn inner(&self) -> &dyn Journal {
        &*self.inner
    }

    async fn append(&self, append: Append) -> Result<Appended, JournalError> {
        self.appends.fetch_add(1, Ordering::SeqCst);
        if !self.is_full() {
            return self.inner().append(append).await;
        }
        if self.death == Death::After && !self.stored.swap(true, Ordering::SeqCst) {
            self.inner().append(append).await?;
        }
        Err(JournalError::Unavailable { reason: full() })
    }

    async fn read(&self, read: Read) -> Result<antiphon_core::port::Page, JournalError> {
        if self.reads_fail && self.is_full() {
            return Err(JournalError::Unavailable { reason: full() });
        }
        self.inner().read(read).await
    }

    async fn spending(
        &self,
        days: antiphon_core::DayRange,
    ) -> Result<antiphon_core::Spending, JournalError> {
        if self.reads_fail && self.is_full() {
            return Err(JournalError::Unavailable { reason: full() });
        }
        self.inner().spending(days).await
    }

    async fn check_append(&self) -> Result<(), AppendFault> {
        if self.is_full() { Err(AppendFault::Unavailable { reason: full() }) } else { Ok(()) }
    }
}

fn patient(journal: Arc<dyn Journal>, tools: &Arc<Counting>) -> Orchestrator {
    let deps = world(journal, tools, STEPS);
    let settings = OrchestratorSettings { storage_wait_max: None, ..deps.settings };
    Orchestrator::new(RuntimeDeps { settings, ..deps })
}

async fn ended(orchestrator: &Orchestrator, task_id: &antiphon_core::TaskId) -> TaskState {
    let hours = Duration::from_secs(24 * 3600);
    let ended = tokio::time::timeout(hours, orchestrator.wait(task_id)).await;
    ended.expect("it goes on by itself").expect("an end")
}

/// Much longer than all restarts together took before.
#[tokio::test(start_paused = true)]
async fn a_full_disk_at_any_write_delays_a_task_and_changes_nothing_else() {
    let whole = {
        let tools = Arc::new(Counting::default());
        let journal = Arc::new(MemoryJournal::new());
        let orchestrator = patient(journal.clone(), &tools);
        let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
        ended(&orchestrator, &task_id).await;
        kinds(&events(&*journal).await)
    };
    for nth in 1..=6 {
        for death in [Death::Before, Death::After] {
            for reads_fail in [false, true] {
                let place = format!("append {nth}, {death:?}, reads fail: {reads_fail}");
                let tools = Arc::new(Counting::default());
                let disk = FullDisk::new(nth, death, reads_fail);
                let orchestrator = patient(disk.clone(), &tools);
                let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
                tokio::time::sleep(Duration::from_secs(600)).await;
                let storage = orchestrator.storage().await;
                if disk.is_full() {
                    assert_eq!(storage.tasks_waiting, 1, "{place}");
                    assert!(storage.fault.is_some() && storage.journal_errors > 10, "{place}");
                    assert_eq!(storage.tasks_stuck, 0, "{place}: it waits");
                    if !reads_fail {
                        let which = TaskSelector::One(task_id.clone());
                        let query = TaskQuery { which, limit: NonZeroUsize::MIN };
                        let listed = orchestrator.tasks(query).await.expect("a list").remove(0);
                        assert_eq!(listed.waiting_for, Some(WaitingFor::Storage), "{place}");
                        let wait = listed.wait.expect("why it waits");
                        assert_eq!(wait.code, "storage", "{place}");
                        assert!(!wait.error.is_empty() && wait.attempt > 10, "{place}: {wait:?}");
                    }
                    let refused = orchestrator.invoke(new_task("more")).await;
                    let refused = refused.expect_err("new work is refused");
                    assert!(matches!(refused, OrchestratorError::Journal(_)), "{refused:?}");
                }
                disk.empty();
                let state = ended(&orchestrator, &task_id).await;
                assert_eq!(state.status, TaskStatus::Completed, "{place}");
                let done = tools.done();
                assert!(done.values().all(|times| *times == 1), "{place}: {done:?}");
                assert_eq!(done.len(), 4, "{place}: {done:?}");
                assert_eq!(kinds(&events(disk.inner()).await), whole, "{place}");
                let storage = orchestrator.storage().await;
                assert_eq!((storage.fault, storage.tasks_waiting), (None, 0), "{place}");
            }
        }
    }
}

/// The types of the events, in order.
fn kinds(events: &[antiphon_core::Event]) -> Vec<String> {
    let kind = |event: &antiphon_core::Event| {
        let mut kind = event.body.event_type().to_owned();
        if let EventBody::MessageAppended(appended) = &event.body
            && let Message::ToolResult(result) = &*appended.message
        {
            kind = format!("{:?}", result.content);
        }
        kind
    };
    events.iter().map(kind).collect()
}

/// A result that was not recorded is kept: the tool is not run a second time, and a cancel that cannot
/// be recorded takes effect when there is room.
#[tokio::test(start_paused = true)]
async fn a_cancel_on_a_full_disk_is_refused_and_takes_effect_later() {
    let tools = Arc::new(Counting::default());
    let disk = FullDisk::new(2, Death::Before, false);
    let orchestrator = patient(disk.clone(), &tools);
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let refused = orchestrator.cancel(&task_id).await.expect_err("it cannot be recorded");
    assert!(refused.to_string().contains("as soon as the journal can be written"), "{refused}");
    disk.empty();
    assert_eq!(ended(&orchestrator, &task_id).await.status, TaskStatus::Canceled);
    assert!(tools.done().values().all(|times| *times == 1));
}

/// A task that does not run, such as one that waits for its children, is canceled when there is room too.
#[tokio::test(start_paused = true)]
async fn a_cancel_of_a_task_at_rest_on_a_full_disk_takes_effect_later() {
    let tools = Arc::new(Counting::default());
    let disk = FullDisk::new(usize::MAX / 2, Death::Before, false);
    let script =
        "name = \"m\"\n[[reply]]\nstep = [{ call = { name = \"hang\", arguments = {} } }]\n";
    let orchestrator = Orchestrator::new(world(disk.clone(), &tools, script));
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    tokio::time::sleep(Duration::from_secs(1)).await;
    orchestrator.interrupt(&task_id).await.expect("interrupted");
    let status = async || orchestrator.task(&task_id).await.expect("a task").status;
    assert_eq!(status().await, TaskStatus::InputRequired);

    disk.fill();
    orchestrator.cancel(&task_id).await.expect_err("it cannot be recorded");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(status().await, TaskStatus::InputRequired);
    disk.empty();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(status().await, TaskStatus::Canceled);
}

/// A limit is a limit: the task stops, is reported as stuck, and can be resumed.
#[tokio::test(start_paused = true)]
async fn a_task_that_may_not_wait_longer_is_stuck_until_it_is_resumed() {
    let tools = Arc::new(Counting::default());
    let disk = FullDisk::new(2, Death::Before, false);
    let deps = world(disk.clone(), &tools, STEPS);
    let wait_max = Some(Duration::from_secs(5));
    let settings = OrchestratorSettings { storage_wait_max: wait_max, ..deps.settings };
    let orchestrator = Orchestrator::new(RuntimeDeps { settings, ..deps });
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    orchestrator.wait(&task_id).await.expect_err("it stopped");
    assert_eq!(orchestrator.storage().await.tasks_stuck, 1);
    disk.empty();
    orchestrator.resume(&task_id).await.expect("resumed");
    assert_eq!(ended(&orchestrator, &task_id).await.status, TaskStatus::Completed);
    assert_eq!(orchestrator.storage().await.tasks_stuck, 0);
}
