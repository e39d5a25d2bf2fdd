//! A person interrupts a turn: nothing ends, and everything can be resumed.

use std::sync::Arc;
use std::time::Duration;

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::{
    EventBody, HandlingMode, InputBlock, Message, PriceTable, StopReason, StreamEvent, TaskId,
    TaskStatus, UserMessage, WaitingFor, sendable,
};
use antiphon_runtime::{DeltaEvent, Orchestrator, OrchestratorError, WatchedDelta, cost};

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
