//! Dead at any write, and up again: nothing is lost, nothing is done twice.

use std::collections::BTreeMap;
use std::sync::Arc;

use antiphon_conformance::model::MemoryJournal;
use antiphon_core::{InputBlock, Message, TaskStatus};
use antiphon_runtime::{Orchestrator, TaskState};

use crate::task::LAPS;
use crate::world::{Counting, Death, Mortal, new_task, orchestrator};

/// What was said, without times.
fn transcript(state: &TaskState) -> Vec<String> {
    let texts = |content: &[InputBlock]| format!("{content:?}");
    state
        .messages()
        .iter()
        .map(|message| match &**message {
            Message::User(user) => texts(&user.content),
            Message::Assistant(answer) => format!("{:?}", answer.content),
            Message::ToolResult(result) => texts(&result.content),
        })
        .collect()
}

async fn recovered(orchestrator: &Orchestrator) -> Option<TaskState> {
    let recovered = orchestrator.recover().await.expect("a list");
    let task_id = recovered.begun.first()?;
    Some(orchestrator.wait(task_id).await.expect("an end"))
}

/// Runs the task, dying at append `last`, and then again without dying. `None` when it was not
/// accepted, or had ended before it died.
async fn interrupted(last: usize, death: Death) -> (Option<TaskState>, BTreeMap<String, usize>) {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let first = orchestrator(Arc::new(Mortal::new(&journal, last, death)), &tools, LAPS);
    // Dead before it was accepted, nobody was promised anything.
    if let Ok(task_id) = first.invoke(new_task("go")).await {
        // It ends, or it dies.
        let _ = first.wait(&task_id).await;
    }
    let second = orchestrator(journal, &tools, LAPS);
    (recovered(&second).await, tools.done())
}

#[tokio::test]
async fn a_task_survives_death_at_every_write() {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let whole = orchestrator(journal, &tools, LAPS);
    let task_id = whole.invoke(new_task("go")).await.expect("accepted");
    let whole = transcript(&whole.wait(&task_id).await.expect("an end"));

    let mut recovered = 0;
    for last in 0..12 {
        for death in [Death::Before, Death::After] {
            let (state, done) = interrupted(last, death).await;
            let Some(state) = state else { continue };
            recovered += 1;
            let place = format!("{death:?} write {last}");
            assert_eq!(state.status, TaskStatus::Completed, "{place}");
            let acts = done.iter().filter(|(what, _)| what.starts_with("act"));
            assert!(acts.clone().all(|(_, times)| *times == 1), "{place}: {done:?}");
            let said = transcript(&state);
            let cut_off = said.iter().filter(|text| text.contains("outcome unknown")).count();
            assert!(cut_off <= 1, "{place}: {said:?}");
            if cut_off == 0 {
                assert_eq!(said, whole, "{place}");
                assert_eq!(acts.count(), 3, "{place}");
            }
        }
    }
    assert!(recovered >= 14, "{recovered} of the deaths left something to recover");
}
