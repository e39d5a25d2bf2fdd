//! What a task reads from the journal does not grow with what was there before.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use antiphon_conformance::reference::{DelegatingJournal, JournalHooks, MemoryJournal};
use antiphon_core::port::{
    Checkpoint, History, HistoryExtent, Journal, JournalError, Page, Read, TaskQuery,
};
use antiphon_core::{Event, HistoryRef, SessionId, StatusChanged, TaskId, TaskSummary};
use antiphon_runtime::{Conversation, NewTask, Orchestrator, PriorHistory, TaskState};
use async_trait::async_trait;

use crate::office::{Office, message};
use crate::world::{Counting, new_task, orchestrator};

const ECHO: &str = "name = \"test\"\n[[reply]]\nstep = [{ text = \"{{turn}}: {{last_user}}\" }]\n";

/// A journal that counts what is read.
struct CountedReads {
    inner: Arc<dyn Journal>,
    reads: AtomicUsize,
    events: AtomicUsize,
}

/// Reads, and events that were decoded for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cost {
    reads: usize,
    events: usize,
}

impl CountedReads {
    fn on(inner: &Arc<dyn Journal>) -> Arc<DelegatingJournal<Self>> {
        let (reads, events) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Arc::new(DelegatingJournal(Self { inner: Arc::clone(inner), reads, events }))
    }

    fn count(&self, events: usize) {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.events.fetch_add(events, Ordering::SeqCst);
    }

    /// What was read since the last call.
    fn take(&self) -> Cost {
        let (reads, events) = (&self.reads, &self.events);
        Cost { reads: reads.swap(0, Ordering::SeqCst), events: events.swap(0, Ordering::SeqCst) }
    }
}

#[async_trait]
impl JournalHooks for CountedReads {
    fn inner(&self) -> &dyn Journal {
        &*self.inner
    }

    async fn read(&self, read: Read) -> Result<Page, JournalError> {
        let page = self.inner().read(read).await?;
        self.count(page.events.len());
        Ok(page)
    }

    async fn history(
        &self,
        until: HistoryRef,
        extent: HistoryExtent,
    ) -> Result<History, JournalError> {
        let history = self.inner().history(until, extent).await?;
        self.count(history.events.len());
        Ok(history)
    }

    async fn first_events(&self, tasks: Vec<TaskId>) -> Result<Vec<Event>, JournalError> {
        let first = self.inner().first_events(tasks).await?;
        self.count(first.len());
        Ok(first)
    }

    async fn last_status(&self, task_id: &TaskId) -> Result<Option<StatusChanged>, JournalError> {
        self.count(1);
        self.inner().last_status(task_id).await
    }

    async fn checkpoint(&self, task_id: &TaskId) -> Result<Option<Checkpoint>, JournalError> {
        self.count(0);
        self.inner().checkpoint(task_id).await
    }

    async fn tasks(&self, query: TaskQuery) -> Result<Vec<TaskSummary>, JournalError> {
        self.count(0);
        self.inner().tasks(query).await
    }
}

/// A session, one task after the other.
struct Talk {
    journal: Arc<DelegatingJournal<CountedReads>>,
    orchestrator: Orchestrator,
    session: Option<SessionId>,
    last: Option<HistoryRef>,
}

impl Talk {
    /// A session of that many tasks.
    async fn of(tasks: usize) -> Self {
        let memory: Arc<dyn Journal> = Arc::new(MemoryJournal::new());
        let journal = CountedReads::on(&memory);
        let mut talk = Self::begin(journal, None, None);
        for number in 0..tasks {
            talk.say(&number.to_string()).await;
        }
        talk.journal.take();
        talk
    }

    fn begin(
        journal: Arc<DelegatingJournal<CountedReads>>,
        session: Option<SessionId>,
        last: Option<HistoryRef>,
    ) -> Self {
        let tools = Arc::new(Counting::default());
        let orchestrator = orchestrator(Arc::clone(&journal) as Arc<dyn Journal>, &tools, ECHO);
        Self { journal, orchestrator, session, last }
    }

    /// The same session in another process.
    fn restarted(self) -> Self {
        let journal = CountedReads::on(&self.journal.inner);
        Self::begin(journal, self.session, self.last)
    }

    /// Runs the next task to its end.
    async fn say(&mut self, text: &str) -> TaskId {
        let before = self.last.take().map_or(PriorHistory::Nothing, PriorHistory::Task);
        let task = NewTask { before, session_id: self.session.clone(), ..new_task(text) };
        let task_id = self.orchestrator.invoke(task).await.expect("accepted").task_id;
        let task = self.orchestrator.rest(&task_id).await.expect("an end");
        self.session = Some(task.session_id);
        self.last = Some(HistoryRef { task_id: task_id.clone(), seq: task.seq });
        task_id
    }
}

/// What the next task of a session reads.
async fn next_task(tasks: usize) -> Cost {
    let mut talk = Talk::of(tasks).await;
    talk.say("and now").await;
    talk.journal.take()
}

/// What it reads in a new process.
async fn next_task_after_restart(tasks: usize) -> Cost {
    let mut talk = Talk::of(tasks).await.restarted();
    talk.say("and now").await;
    talk.journal.take()
}

#[tokio::test]
async fn a_task_reads_no_more_in_a_long_session_than_in_a_short_one() {
    let (short, long) = (next_task(3).await, next_task(300).await);
    assert!(long.reads <= short.reads + 2, "{short:?} {long:?}");
    assert!(long.events <= short.events + 8, "{short:?} {long:?}");
    assert!(long.reads <= 8 && long.events <= 16, "{long:?}");
}

#[tokio::test]
async fn after_a_restart_it_reads_the_messages_once() {
    let (short, long) = (next_task_after_restart(3).await, next_task_after_restart(300).await);
    assert!(long.reads <= short.reads + 2, "{short:?} {long:?}");
    assert!(long.events <= short.events + 2 * 300, "{short:?} {long:?}");
}

/// As a look at the task through an interface does.
#[tokio::test]
async fn the_result_of_a_task_is_read_without_its_session() {
    let mut talk = Talk::of(300).await.restarted();
    let task_id = talk.last.clone().expect("a task").task_id;
    let last = talk.orchestrator.last_status(&task_id).await.expect("a journal");
    assert_eq!(last.and_then(|last| last.detail), Some(serde_json::json!("299: 299")));
    assert_eq!(talk.journal.take(), Cost { reads: 1, events: 1 });
    talk.orchestrator.rest(&task_id).await.expect("a task");
    assert_eq!(talk.journal.take(), Cost { reads: 1, events: 0 });
    talk.orchestrator.task_alone(&task_id).await.expect("a task");
    let cost = talk.journal.take();
    assert!(cost.reads <= 2 && cost.events <= 12, "{cost:?}");
    talk.say("and it goes on").await;
}

/// What a process reads when it starts beside that many paused tasks.
async fn start_beside(paused: usize) -> Cost {
    let memory: Arc<dyn Journal> = Arc::new(MemoryJournal::new());
    let tools = Arc::new(Counting::default());
    let stalls = "name = \"test\"\n[[reply]]\nstep = [{ stall = true }]\n";
    let before = orchestrator(Arc::clone(&memory), &tools, stalls);
    for number in 0..paused {
        let task = new_task(&number.to_string());
        let task_id = before.invoke(task).await.expect("accepted").task_id;
        before.pause(&task_id).await.expect("a pause");
    }
    before.shutdown(Duration::ZERO).await;
    let journal = CountedReads::on(&memory);
    let after = orchestrator(Arc::clone(&journal) as Arc<dyn Journal>, &tools, stalls);
    let recovered = after.recover().await.expect("a start");
    assert_eq!((recovered.waiting.len(), recovered.begun.len()), (paused, 0));
    journal.take()
}

#[tokio::test]
async fn a_start_reads_rows_and_one_list_of_creations() {
    let (few, many) = (start_beside(2).await, start_beside(60).await);
    assert_eq!(few.reads, many.reads, "{few:?} {many:?}");
    assert!(many.events <= 60, "{many:?}");
}

/// What a message to an agent reads that has answered that many, in a process that has just started.
async fn next_wake(turns: usize) -> Cost {
    let mut office = Office::of(&["clerk"], ECHO.to_owned());
    let (_, task_id) = office.admit(message("clerk", "0")).await;
    for number in 1..turns {
        office.at_rest("clerk").await;
        office.admit(message("clerk", &number.to_string())).await;
    }
    office.at_rest("clerk").await;
    let journal = CountedReads::on(&office.team.journal);
    office.orchestrator.shutdown(Duration::ZERO).await;
    office.orchestrator = office.on(Arc::clone(&journal) as Arc<dyn Journal>);
    office.admit(message("clerk", "and now")).await;
    while office.orchestrator.is_working() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let cost = journal.take();
    let state = office.orchestrator.task(&task_id).await.expect("a task");
    assert_eq!(state.messages().len(), 2 * turns + 2);
    let mut events = office.events().await;
    events.retain(|event| event.task_id == task_id);
    let whole = TaskState::replay(&task_id, Conversation::default(), &events);
    assert_eq!(whole.as_ref(), Ok(&state), "a checkpoint is what the events say");
    cost
}

#[tokio::test(start_paused = true)]
async fn waking_an_agent_reads_only_what_is_new() {
    let (short, long) = (next_wake(20).await, next_wake(220).await);
    assert!(long.reads <= short.reads + 4, "{short:?} {long:?}");
    // Its messages, once, and nothing else of its life.
    assert!(long.events <= short.events + 2 * 200 + 128, "{short:?} {long:?}");
}
