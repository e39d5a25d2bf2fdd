//! Tasks that continue the conversation of another one.

use std::num::NonZeroUsize;
use std::sync::Arc;

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::{EventBody, HistoryRef, Seq};
use antiphon_runtime::{
    NewTask, Orchestrator, OrchestratorError, PriorHistory, ReplayError, TaskState,
};

use crate::world::{Counting, events, new_task, orchestrator};

const ECHO: &str = "name = \"test\"\n[[reply]]\nstep = [{ text = \"{{turn}}: {{last_user}}\" }]\n";

fn scene() -> (Arc<MemoryJournal>, Orchestrator) {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let orchestrator = orchestrator(journal.clone(), &tools, ECHO);
    (journal, orchestrator)
}

async fn done(orchestrator: &Orchestrator, task: NewTask) -> TaskState {
    let task_id = orchestrator.invoke(task).await.expect("accepted").task_id;
    orchestrator.wait(&task_id).await.expect("an end")
}

fn behind(state: &TaskState, text: &str) -> NewTask {
    let history = HistoryRef { task_id: state.task_id.clone(), seq: state.seq };
    let session_id = Some(state.created.session_id.clone());
    NewTask { before: PriorHistory::Task(history), session_id, ..new_task(text) }
}

#[tokio::test]
async fn a_conversation_goes_on_without_being_copied() {
    let (journal, orchestrator) = scene();
    let mut state = done(&orchestrator, new_task("0")).await;
    for number in 1..20 {
        state = done(&orchestrator, behind(&state, &number.to_string())).await;
    }
    assert_eq!(state.detail, Some(serde_json::json!("19: 19")));
    assert_eq!(state.messages().len(), 40);
    let written = events(&*journal)
        .await
        .into_iter()
        .filter(|event| matches!(&event.body, EventBody::MessageAppended(_)));
    assert_eq!(written.count(), 40, "each message is in the journal once");
    let ten = NonZeroUsize::new(10).expect("a number");
    let sessions = orchestrator.sessions(ten).await.expect("a list");
    assert_eq!((sessions.len(), sessions[0].tasks), (1, 20));
}

#[tokio::test]
async fn a_fork_goes_its_own_way() {
    let (_, orchestrator) = scene();
    let first = done(&orchestrator, new_task("a")).await;
    let left = done(&orchestrator, NewTask { session_id: None, ..behind(&first, "b") }).await;
    let right = done(&orchestrator, NewTask { session_id: None, ..behind(&first, "c") }).await;
    assert_eq!(left.messages()[..2], right.messages()[..2]);
    assert_eq!(left.messages().len(), 4);
    assert_ne!(left.created.session_id, right.created.session_id);
    // Cut off before the answer.
    let history = HistoryRef { task_id: first.task_id.clone(), seq: Seq(2) };
    let early = NewTask { before: PriorHistory::Task(history), ..new_task("d") };
    assert_eq!(done(&orchestrator, early).await.messages().len(), 3);
}

#[tokio::test]
async fn a_history_that_is_not_there_is_refused() {
    let (journal, orchestrator) = scene();
    let task_id = antiphon_core::TaskId::parse("gone").expect("an id");
    let history = HistoryRef { task_id: task_id.clone(), seq: Seq(9) };
    let refused =
        orchestrator.invoke(NewTask { before: PriorHistory::Task(history), ..new_task("x") }).await;
    assert_eq!(refused, Err(OrchestratorError::Replay(ReplayError::NoTask { task_id })));
    assert!(events(&*journal).await.is_empty());
}
