//! Watchers see everything, once, in order.

use std::sync::Arc;

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::port::{Clock, IdempotencyKey, SystemClock};
use antiphon_core::{Event, HandlingMode, Position, StreamEvent, TaskId, UserMessage};
use antiphon_runtime::{
    AcceptedTask, DeltaEvent, DeltaWatcher, NewTask, Orchestrator, WatchedDelta,
};
use tokio::task::JoinSet;

use crate::task::STEPS;
use crate::world::{Counting, events, new_task, orchestrator};

#[tokio::test]
async fn a_follower_sees_what_was_and_what_comes_without_a_gap() {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let orchestrator = orchestrator(journal.clone(), &tools, STEPS);
    let first = orchestrator.invoke(new_task("one")).await.expect("accepted").task_id;
    orchestrator.wait(&first).await.expect("an end");
    let mut early = orchestrator.follow(None, Position(0));
    let mut late = orchestrator.follow(None, Position(7));
    let second = orchestrator.invoke(new_task("two")).await.expect("accepted").task_id;
    orchestrator.wait(&second).await.expect("an end");
    let all = events(&*journal).await;
    for event in &all {
        assert_eq!(early.next().await.expect("an event"), *event);
    }
    for event in &all[7..] {
        assert_eq!(late.next().await.expect("an event"), *event);
    }
    assert_eq!(early.behind(), 0);
    assert_eq!(early.position(), all.last().expect("events").position);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_tasks_at_once_all_complete_and_are_all_seen() {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let script = "name = \"test\"\n[[reply]]\nstep = [{ text = \"Done.\" }]\n";
    let orchestrator = orchestrator(journal, &tools, script);
    let mut follower = orchestrator.follow(None, Position(0));
    let mut invocations = JoinSet::new();
    for _ in 0..1000 {
        let orchestrator = orchestrator.clone();
        invocations.spawn(async move { orchestrator.invoke(new_task("go")).await });
    }
    while let Some(accepted) = invocations.join_next().await {
        accepted.expect("no panic").expect("accepted");
    }
    let (mut ended, mut last) = (0, Position(0));
    while ended < 1000 {
        let event = follower.next().await.expect("an event");
        assert_eq!(event.position.0, last.0 + 1);
        last = event.position;
        ended += usize::from(event.body.ends_task());
    }
}

/// A model that never answers.
const WAITS: &str = "name = \"test\"\n[[reply]]\nstep = [{ stall = true }]\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_follower_sees_the_journal_of_a_task_with_any_writer() {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let orchestrator = orchestrator(journal.clone(), &tools, WAITS);
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    let other = orchestrator.invoke(new_task("another")).await.expect("accepted").task_id;
    let mut watching = JoinSet::new();
    let mut writing = JoinSet::new();
    for number in 0..100 {
        if number % 5 == 0 {
            watching.spawn(followed(orchestrator.clone(), task_id.clone()));
        }
        for to in [&task_id, &other] {
            let (orchestrator, to) = (orchestrator.clone(), to.clone());
            let word = UserMessage::text(format!("word {number}"), SystemClock.now());
            writing.spawn(async move { orchestrator.send(&to, word, HandlingMode::Queue).await });
        }
        tokio::task::yield_now().await;
    }
    while let Some(written) = writing.join_next().await {
        written.expect("no panic").expect("queued");
    }
    orchestrator.cancel(&task_id).await.expect("canceled");
    watching.spawn(followed(orchestrator.clone(), task_id.clone()));
    let mut all = events(&*journal).await;
    all.retain(|event| event.task_id == task_id);
    assert!(all.len() > 100);
    while let Some(seen) = watching.join_next().await {
        assert_eq!(seen.expect("no panic"), all);
    }
}

/// Everything up to the end. The JSON says the same.
async fn followed(orchestrator: Orchestrator, task_id: TaskId) -> Vec<Event> {
    let mut follower = orchestrator.follow(Some(task_id), Position(0));
    let mut seen: Vec<Event> = Vec::new();
    while !seen.last().is_some_and(|event| event.body.ends_task()) {
        let reported = follower.next_serialized().await.expect("an event");
        assert_eq!(
            reported.json().expect("JSON"),
            serde_json::to_string(reported.value()).expect("JSON")
        );
        seen.push(reported.value().clone());
    }
    seen
}

#[tokio::test]
async fn an_attached_watcher_sees_only_its_task_from_the_beginning() {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let script = "name = \"test\"\nchunk_chars = 2\n[[reply]]\nstep = [{ text = \"I heard {{last_user}}.\" }]\n";
    let orchestrator = orchestrator(journal, &tools, script);
    let keyed =
        |text: &str| NewTask { key: Some(IdempotencyKey(text.to_owned())), ..new_task(text) };
    let (one, mut first) = orchestrator.invoke_attached(keyed("one")).await.expect("accepted");
    let (two, mut second) = orchestrator.invoke_attached(keyed("two")).await.expect("accepted");
    let (again, mut third) = orchestrator.invoke_attached(keyed("one")).await.expect("accepted");
    let one = one.task_id;
    assert_eq!(again, AcceptedTask { task_id: one.clone(), deduplicated: true });
    assert!(!two.deduplicated);
    let two = two.task_id;
    assert!(third.take_deltas().is_none(), "it may have begun to speak before");
    for (task_id, attended, said) in
        [(&one, &mut first, "I heard one."), (&two, &mut second, "I heard two.")]
    {
        let deltas = attended.take_deltas().expect("deltas");
        orchestrator.wait(task_id).await.expect("an end");
        assert_eq!(shown(deltas, task_id), said);
    }
    for attended in [first, second, third] {
        attended.detach();
    }
}

/// What was shown, all of it of this task.
fn shown(mut deltas: DeltaWatcher, task_id: &TaskId) -> String {
    let mut text = String::new();
    while let Some(WatchedDelta::Delta(delta)) = deltas.try_recv() {
        assert_eq!(delta.value().task_id, *task_id);
        if let DeltaEvent::Answer(StreamEvent::TextDelta { delta }) = &delta.value().event {
            text.push_str(delta);
        }
    }
    text
}
