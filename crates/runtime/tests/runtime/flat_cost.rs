//! What a task reads from the journal does not grow with what was there before.

use std::sync::Arc;
use std::time::Duration;

use antiphon_conformance::reference::{DelegatingJournal, MemoryJournal};
use antiphon_core::port::Journal;
use antiphon_core::{HistoryRef, RunnerConfig, SessionId, TaskId};
use antiphon_runtime::{Conversation, NewTask, Orchestrator, PriorHistory, TaskState};

use crate::counted_reads::{Cost, CountedReads};
use crate::live_agents::{LiveAgents, message};
use crate::team::{Roster, Team};
use crate::world::{Counting, new_task, orchestrator};

pub(crate) const ECHO: &str =
    "name = \"test\"\n[[reply]]\nstep = [{ text = \"{{turn}}: {{last_user}}\" }]\n";

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
    assert_eq!(talk.journal.take(), Cost { reads: 1, events: 1, ..Cost::default() });
    talk.orchestrator.rest(&task_id).await.expect("a task");
    assert_eq!(talk.journal.take(), Cost { reads: 1, rows: 1, ..Cost::default() });
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

#[tokio::test(start_paused = true)]
async fn a_live_agent_that_nothing_has_reached_stays_a_row_until_something_does() {
    let names: Vec<String> = (0..40).map(|number| format!("clerk-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut live_agents = LiveAgents::of(&names, ECHO.to_owned());
    for name in &names {
        live_agents.start(name).await;
        assert!(!live_agents.orchestrator.is_working(), "a start has nothing to do");
    }
    let before = live_agents.events().await;
    live_agents.orchestrator.shutdown(Duration::ZERO).await;
    let journal = CountedReads::on(&live_agents.team.journal);
    live_agents.orchestrator = live_agents.on(Arc::clone(&journal) as Arc<dyn Journal>);
    let recovered = live_agents.orchestrator.recover().await.expect("a start");
    assert_eq!((recovered.begun, recovered.waiting), (Vec::new(), Vec::new()));
    assert!(!live_agents.orchestrator.is_working());
    let cost = journal.take();
    assert!(cost.reads <= 2 && cost.events <= names.len(), "{cost:?}");
    assert_eq!(live_agents.events().await, before);
    let (_, task_id) = live_agents.admit(message("clerk-7", "hello")).await;
    let state = live_agents.at_rest("clerk-7").await;
    assert_eq!((state.task_id, state.turns), (task_id, 1));
}

/// A client that sends its whole conversation with each request needs none of it here.
#[tokio::test]
async fn only_the_conversation_of_a_session_is_kept() {
    let mut talk = Talk::of(1).await;
    talk.say("and now").await;
    assert_eq!(talk.journal.take().histories, 0, "it is in memory");
    let attached = talk.orchestrator.invoke_attached(new_task("chat")).await;
    let (accepted, attached) = attached.expect("accepted");
    let ended = talk.orchestrator.rest(&accepted.task_id).await.expect("an end");
    attached.detach();
    talk.last = Some(HistoryRef { task_id: ended.task_id, seq: ended.seq });
    talk.journal.take();
    talk.say("and now").await;
    assert_eq!(talk.journal.take().histories, 1, "it is read");
}

/// What the next task of a session reads that runs on a runner.
async fn next_task_on_runner(tasks: usize) -> Cost {
    let mut talk = Talk::of(tasks).await;
    let journal = CountedReads::on(&talk.journal.inner);
    let team = Team {
        journal: Arc::clone(&journal) as Arc<dyn Journal>,
        ..Team::new(ECHO.to_owned(), Roster::default())
    };
    let before = talk.last.take().map_or(PriorHistory::Nothing, PriorHistory::Task);
    let runner = Some(RunnerConfig { kind: "elsewhere".to_owned(), config: serde_json::json!({}) });
    let next = NewTask { before, runner, session_id: talk.session, ..new_task("and now") };
    let orchestrator = team.orchestrator();
    let task_id = orchestrator.invoke(next).await.expect("accepted").task_id;
    orchestrator.rest(&task_id).await.expect("an end");
    let cost = journal.take();
    let last = orchestrator.last_status(&task_id).await.expect("a journal").expect("an end");
    assert_eq!(last.detail, Some(serde_json::json!(format!("{tasks}: and now"))));
    cost
}

#[tokio::test]
async fn a_task_on_a_runner_does_not_read_the_tasks_before_it_one_by_one() {
    let (short, long) = (next_task_on_runner(3).await, next_task_on_runner(100).await);
    assert!(long.reads <= short.reads + 4, "{short:?} {long:?}");
    // Its messages, in the orchestrator and in the runner.
    assert!(long.events <= short.events + 4 * 2 * 97, "{short:?} {long:?}");
}

/// What a message to an agent reads that has answered that many, in a process that has just started.
async fn next_wake(turns: usize) -> Cost {
    let mut live_agents = LiveAgents::of(&["clerk"], ECHO.to_owned());
    let (_, task_id) = live_agents.admit(message("clerk", "0")).await;
    for number in 1..turns {
        live_agents.at_rest("clerk").await;
        live_agents.admit(message("clerk", &number.to_string())).await;
    }
    live_agents.at_rest("clerk").await;
    let journal = CountedReads::on(&live_agents.team.journal);
    live_agents.orchestrator.shutdown(Duration::ZERO).await;
    live_agents.orchestrator = live_agents.on(Arc::clone(&journal) as Arc<dyn Journal>);
    live_agents.admit(message("clerk", "and now")).await;
    while live_agents.orchestrator.is_working() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let cost = journal.take();
    let state = live_agents.orchestrator.task(&task_id).await.expect("a task");
    assert_eq!(state.messages().len(), 2 * turns + 2);
    let mut events = live_agents.events().await;
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
