//! Watchers read nothing back that they can have from memory.

use std::sync::Arc;

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::port::Journal;
use antiphon_core::{Position, TaskId};
use antiphon_runtime::{Follower, Orchestrator};

use crate::counted_reads::{Cost, CountedReads};
use crate::flat_cost::ECHO;
use crate::world::{Counting, new_task, orchestrator};

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
