//! A person interrupts a turn: nothing ends, and everything can be resumed.

use std::sync::Arc;
use std::time::Duration;

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::{
    EventBody, HandlingMode, InputBlock, Message, Price, PriceTable, StopReason, StreamEvent,
    TaskId, TaskStatus, UserMessage, WaitingFor, sendable,
};
use antiphon_runtime::{
    AnswerDelta, DeltaEvent, Orchestrator, OrchestratorError, WatchedDelta, cost,
};

use crate::team::{Roster, Team, agent, calls, says, script};
use crate::world::{Counting, events, new_task, orchestrator};

/// The first answer stalls in the middle; a message of the user gets a whole one.
const HALF: &str = r#"
name = "test"
[[reply]]
when = { last_user_contains = "go on" }
step = [{ text = "The rest." }]
[[reply]]
step = [{ text = "The first half" }, { stall = true }]
"#;

const HANGS: &str = r#"
name = "test"
[[reply]]
when = { results_since_user = 0 }
steps = [{ call = { name = "hang", arguments = {} } }, { call = { name = "act", arguments = {} } }]
[[reply]]
step = [{ text = "Done." }]
"#;

struct Bench {
    journal: Arc<MemoryJournal>,
    tools: Arc<Counting>,
    orchestrator: Orchestrator,
}

fn bench(script: &str) -> Bench {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let orchestrator = orchestrator(journal.clone(), &tools, script);
    Bench { journal, tools, orchestrator }
}

/// Starts a task, and returns when its answer has begun.
async fn begun(orchestrator: &Orchestrator) -> TaskId {
    let mut deltas = orchestrator.deltas();
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    loop {
        let watched = deltas.recv().await.expect("a delta");
        if let WatchedDelta::Delta(delta) = watched
            && let DeltaEvent::Answer(StreamEvent::TextDelta { .. }) = delta.value().event
        {
            return task_id;
        }
    }
}

#[tokio::test]
async fn an_interrupted_task_waits_for_a_person_and_offers_what_it_had_written() {
    let Bench { orchestrator, .. } = bench(HALF);
    let task_id = begun(&orchestrator).await;
    orchestrator.interrupt(&task_id).await.expect("interrupted");
    let state = orchestrator.wait(&task_id).await.expect("it rests");
    assert_eq!(
        (state.status, state.waiting_for),
        (TaskStatus::InputRequired, Some(WaitingFor::Resume))
    );
    assert_eq!(state.detail.as_ref().expect("a reason")["code"], "interrupted");
    let Some(Message::Assistant(partial)) = state.messages().last().map(|last| &**last) else {
        unreachable!("the last message is the answer: {:?}", state.messages());
    };
    assert_eq!(
        (partial.text().as_str(), partial.stop_reason),
        ("The first half", StopReason::Aborted)
    );
    // Nothing counted its tokens.
    assert!(cost(&state.spent, &PriceTable::default()).is_err(), "{:?}", state.spent);
    let message = UserMessage::text("go on", chrono::DateTime::UNIX_EPOCH);
    orchestrator.send(&task_id, message, HandlingMode::Steer).await.expect("sent");
    orchestrator.resume(&task_id).await.expect("resumed");
    let state = orchestrator.wait(&task_id).await.expect("an end");
    assert_eq!(state.status, TaskStatus::Completed);
    let sent = sendable(state.messages());
    let [_, Message::Assistant(half), Message::User(told), _] =
        &*sent.iter().map(|message| &**message).collect::<Vec<_>>()
    else {
        unreachable!("{sent:?}");
    };
    assert_eq!(half.text(), "The first half");
    let note = InputBlock::text("[Your answer above was interrupted here, before its end.]");
    assert_eq!(told.content, [note, InputBlock::text("go on")]);
}

#[tokio::test]
async fn an_interrupt_ends_running_calls_and_starts_no_other() {
    let Bench { journal, tools, orchestrator } = bench(HANGS);
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    let mut follower = orchestrator.follow(Some(task_id.clone()), antiphon_core::Position(0));
    while !matches!(follower.next().await.expect("an event").body, EventBody::ToolStarted(_)) {}
    orchestrator.interrupt(&task_id).await.expect("interrupted");
    let state = orchestrator.wait(&task_id).await.expect("it rests");
    assert_eq!(state.waiting_for, Some(WaitingFor::Resume));
    assert!(tools.done().is_empty(), "{:?}", tools.done());
    orchestrator.resume(&task_id).await.expect("resumed");
    let state = orchestrator.wait(&task_id).await.expect("an end");
    assert_eq!(state.status, TaskStatus::Completed, "{:?}", state.detail);
    assert_eq!(tools.done().get("act {}"), Some(&1));
    let results = events(&*journal).await.into_iter().filter(|event| {
        matches!(&event.body, EventBody::MessageAppended(appended)
            if matches!(&*appended.message, Message::ToolResult(_)))
    });
    assert_eq!(results.count(), 2, "each call has one result");
}

#[tokio::test]
async fn an_interrupt_is_durable_again_and_again_and_a_cancel_ends_it() {
    let Bench { journal, tools, orchestrator } = bench(HALF);
    let task_id = begun(&orchestrator).await;
    for _ in 0..3 {
        orchestrator.interrupt(&task_id).await.expect("interrupted");
    }
    orchestrator.shutdown(Duration::from_secs(1)).await;
    let next = crate::world::orchestrator(journal, &tools, HALF);
    let recovered = next.recover().await.expect("recovered");
    assert_eq!(recovered.waiting, std::slice::from_ref(&task_id));
    next.resume(&task_id).await.expect("resumed");
    next.interrupt(&task_id).await.expect("interrupted");
    let state = next.wait(&task_id).await.expect("it rests");
    assert_eq!(state.status, TaskStatus::InputRequired);
    next.cancel(&task_id).await.expect("canceled");
    let state = next.task(&task_id).await.expect("a task");
    assert_eq!(state.status, TaskStatus::Canceled);
    let ended = next.interrupt(&task_id).await;
    assert!(matches!(ended, Err(OrchestratorError::Ended { .. })), "{ended:?}");
}

/// A lead with two agents whose answers stall, and an agent below one of them.
fn stalling_team() -> Team {
    let targets =
        r#"{"join":"all","targets":[{"agent":"a","prompt":"1"},{"agent":"b","prompt":"2"}]}"#;
    let stalls = format!("{}, {{ stall = true }}", says("half"));
    let below = calls(r#"{"agent":"c","prompt":"3"}"#);
    Team::new(
        script(&[
            ("Be brief", 0, &calls(targets)),
            ("Be brief", 1, &says("done")),
            ("I am a.", 0, &stalls),
            ("I am a.", 1, &says("one")),
            ("I am b.", 0, &below),
            ("I am b.", 1, &says("two")),
            ("I am c.", 0, &stalls),
            ("I am c.", 1, &says("three")),
        ]),
        Roster::default().with(agent("a")).with(agent("b")).with(agent("c")),
    )
}

/// Starts the team, and returns the ids of `lead`, `a`, `b` and `c` when both answers have begun.
async fn at_work(team: &Team, orchestrator: &Orchestrator) -> [TaskId; 4] {
    let mut deltas = orchestrator.deltas();
    let lead = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    let mut begun = std::collections::HashSet::new();
    while begun.len() < 2 {
        if let WatchedDelta::Delta(delta) = deltas.recv().await.expect("a delta")
            && let DeltaEvent::Answer(StreamEvent::TextDelta { .. }) = delta.value().event
        {
            begun.insert(delta.value().task_id.clone());
        }
    }
    let tasks = team.tasks().await;
    let of = |name: &str| {
        let task = tasks.iter().find(|task| task.agent == name).expect("a task");
        task.task_id.clone()
    };
    [lead, of("a"), of("b"), of("c")]
}

/// What each task waits for.
async fn waits(orchestrator: &Orchestrator, tasks: &[TaskId; 4]) -> [Option<WaitingFor>; 4] {
    let mut waits = [None; 4];
    for (task_id, waits) in tasks.iter().zip(&mut waits) {
        *waits = orchestrator.task(task_id).await.expect("a task").waiting_for;
    }
    waits
}

const RESUME: Option<WaitingFor> = Some(WaitingFor::Resume);

#[tokio::test]
async fn an_interrupt_reaches_every_descendant_and_a_resume_of_the_root_continues_all() {
    let team = stalling_team();
    let orchestrator = team.orchestrator();
    let tasks = at_work(&team, &orchestrator).await;
    orchestrator.interrupt(&tasks[0]).await.expect("interrupted");
    assert_eq!(waits(&orchestrator, &tasks).await, [RESUME; 4]);
    let below = orchestrator.task(&tasks[3]).await.expect("a task").detail.expect("a reason");
    assert_eq!(
        (&below["code"], &below["with_task"]),
        (&"interrupted".into(), &tasks[0].as_str().into())
    );
    orchestrator.shutdown(Duration::from_secs(1)).await;
    let next = team.orchestrator();
    next.recover().await.expect("recovered");
    assert_eq!(waits(&next, &tasks).await, [RESUME; 4], "they stay interrupted");
    next.resume(&tasks[0]).await.expect("resumed");
    let state = next.wait(&tasks[0]).await.expect("an end");
    assert_eq!(state.status, TaskStatus::Completed, "{:?}", state.detail);
    for task in team.tasks().await {
        assert_eq!(task.status, TaskStatus::Completed, "{task:?}");
    }
}

#[tokio::test]
async fn a_resume_leaves_alone_what_a_person_stopped_by_itself() {
    let team = stalling_team();
    let orchestrator = team.orchestrator();
    let tasks = at_work(&team, &orchestrator).await;
    let [lead, a, b, _] = &tasks;
    orchestrator.interrupt(b).await.expect("interrupted");
    assert_eq!(waits(&orchestrator, &tasks).await, [None, None, RESUME, RESUME]);
    orchestrator.interrupt(lead).await.expect("interrupted");
    orchestrator.resume(lead).await.expect("resumed");
    let [lead_waits, _, b_waits, c_waits] = waits(&orchestrator, &tasks).await;
    assert_eq!([lead_waits, b_waits, c_waits], [None, RESUME, RESUME]);
    let ended = orchestrator.wait(a).await.expect("an end");
    assert_eq!(ended.status, TaskStatus::Completed, "{:?}", ended.detail);
    orchestrator.resume(b).await.expect("resumed");
    let state = orchestrator.wait(lead).await.expect("an end");
    assert_eq!(state.status, TaskStatus::Completed, "{:?}", state.detail);
}

#[tokio::test]
async fn descendants_of_a_task_are_no_work_of_others() {
    let team = stalling_team();
    let orchestrator = team.orchestrator();
    let tasks = at_work(&team, &orchestrator).await;
    assert!(!orchestrator.is_working_besides(&tasks[0]).await);
    assert!(orchestrator.is_working_besides(&tasks[1]).await);
}

const COUNTED_THEN_HALF: &str = r#"
name = "test"
[[reply]]
when = { results_since_user = 0 }
step = [{ text = "First." }, { call = { name = "act", arguments = {} } }]
usage = { input_tokens = 1000, output_tokens = 200 }
[[reply]]
step = [{ text = "The first half" }, { stall = true }]
"#;

#[tokio::test]
async fn an_interrupted_answer_makes_the_cost_unknown_also_after_counted_ones() {
    let Bench { orchestrator, .. } = bench(COUNTED_THEN_HALF);
    let mut deltas = orchestrator.deltas();
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    loop {
        if let WatchedDelta::Delta(delta) = deltas.recv().await.expect("a delta")
            && let DeltaEvent::Answer(StreamEvent::TextDelta { delta }) = &delta.value().event
            && delta.contains("half")
        {
            break;
        }
    }
    orchestrator.interrupt(&task_id).await.expect("interrupted");
    let state = orchestrator.wait(&task_id).await.expect("it rests");
    let model = state.created.model.clone().expect("a model");
    let usd = |usd: f64| usd.try_into().expect("a price");
    let price = Price { input: usd(1.0), output: usd(5.0), cache_read: None, cache_write: None };
    let prices = PriceTable::from_iter([(model.clone(), price)]);
    let counted = state.spent[&model.to_string()];
    assert_eq!((counted.input_tokens, counted.output_tokens), (1000, 200));
    let unknown = cost(&state.spent, &prices).expect_err("an unknown cost");
    assert_eq!(unknown, format!("{model} (uncounted)"));
    let limit = std::num::NonZeroUsize::MAX;
    let which = antiphon_core::port::TaskSelector::All;
    let listed = orchestrator.tasks(antiphon_core::port::TaskQuery { which, limit }).await;
    assert_eq!(listed.expect("tasks")[0].spent, state.spent);
}

#[tokio::test]
async fn an_answer_that_a_stop_cuts_off_is_superseded_and_asked_for_again() {
    let Bench { journal, tools, orchestrator } = bench(HALF);
    let mut deltas = orchestrator.deltas();
    let task_id = begun(&orchestrator).await;
    orchestrator.drain(Duration::from_secs(5)).await;
    orchestrator.shutdown(Duration::from_secs(1)).await;
    let told = std::iter::from_fn(|| deltas.try_recv()).any(|watched| {
        matches!(&watched, WatchedDelta::Delta(delta)
            if matches!(&delta.value().event, DeltaEvent::State(AnswerDelta::AnswerSuperseded { code, .. }) if code == "stopping"))
    });
    assert!(told, "watchers learn it");
    let recorded: Vec<EventBody> =
        events(&*journal).await.into_iter().map(|event| event.body).collect();
    let superseded = recorded
        .iter()
        .any(|body| matches!(body, EventBody::MessageAppended(appended) if appended.superseded));
    let uncounted = recorded.iter().any(|body| {
        matches!(body, EventBody::UsageRecorded(recorded) if recorded.summed_under().ends_with("(uncounted)"))
    });
    assert!(superseded && uncounted, "{recorded:?}");
    let fine = "name = \"test\"\n[[reply]]\nstep = [{ text = \"Whole.\" }]\n";
    let next = crate::world::orchestrator(journal, &tools, fine);
    next.recover().await.expect("recovered");
    let state = next.wait(&task_id).await.expect("an end");
    assert_eq!(state.status, TaskStatus::Completed, "{:?}", state.detail);
    let sent = sendable(state.messages());
    assert_eq!(sent.len(), 2, "{sent:?}");
    assert_eq!(state.turns, 1, "one answer counts");
}
