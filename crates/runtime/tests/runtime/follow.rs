//! Watchers see everything, once, in order.

use std::sync::Arc;

use antiphon_conformance::model::MemoryJournal;
use antiphon_core::Position;
use tokio::task::JoinSet;

use crate::task::LAPS;
use crate::world::{Counting, events, new_task, orchestrator};

#[tokio::test]
async fn a_follower_sees_what_was_and_what_comes_without_a_gap() {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let orchestrator = orchestrator(journal.clone(), &tools, LAPS);
    let first = orchestrator.invoke(new_task("one")).await.expect("accepted");
    orchestrator.wait(&first).await.expect("an end");
    let mut early = orchestrator.follow(None, Position(0));
    let mut late = orchestrator.follow(None, Position(7));
    let second = orchestrator.invoke(new_task("two")).await.expect("accepted");
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
