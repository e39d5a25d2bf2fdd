//! Dead at any write, and up again: nothing is lost, nothing is done twice.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::port::{ApprovalSelector, Journal};
use antiphon_core::{
    Decision, Event, EventBody, HandlingMode, InputBlock, Message, RawJson, TaskId, TaskStatus,
    UserMessage,
};
use antiphon_runtime::{NewTask, Orchestrator, RuntimeDeps, TaskState};

use crate::task::STEPS;
use crate::world::{Careful, Counting, Death, Mortal, new_task, orchestrator, world};

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
    let first = orchestrator(Arc::new(Mortal::new(&journal, last, death)), &tools, STEPS);
    // Killed before it was accepted: nothing was promised.
    if let Ok(accepted) = first.invoke(new_task("go")).await {
        // It ends, or it dies.
        let _ = first.wait(&accepted.task_id).await;
    }
    let second = orchestrator(journal, &tools, STEPS);
    (recovered(&second).await, tools.done())
}

#[tokio::test]
async fn a_task_survives_death_at_every_write() {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let whole = orchestrator(journal, &tools, STEPS);
    let task_id = whole.invoke(new_task("go")).await.expect("accepted").task_id;
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

/// Everything at once: questions, a message that steers, a result that has to be corrected.
const BUSY: &str = r#"
name = "test"
[[reply]]
when = { turn = 0 }
step = [
    { call = { name = "look", arguments = { at = "a" } } },
    { call = { name = "act", arguments = { on = "a" } } },
    { call = { name = "act", arguments = { on = "b" } } },
]
[[reply]]
when = { turn = 1 }
step = [{ call = { name = "act", arguments = { on = "c" } } }]
[[reply]]
when = { turn = 2 }
step = [{ text = "Not what was asked for." }]
[[reply]]
step = [{ call = { name = "final", arguments_json = '{"result":{"n":1}}' } }]
"#;

/// A person who allows everything, and says something on the way. Gives up when the journal dies.
async fn attended(orchestrator: &Orchestrator, task_id: &TaskId) -> Option<TaskState> {
    loop {
        let state = orchestrator.wait(task_id).await.ok()?;
        if state.status.is_terminal() {
            return Some(state);
        }
        let received = format!("{:?}{:?}", state.messages(), state.queue).contains("by the way");
        if !received {
            let said = UserMessage::text("by the way", chrono::DateTime::UNIX_EPOCH);
            orchestrator.send(task_id, said, HandlingMode::Steer).await.ok()?;
        }
        for approval in orchestrator.approvals(ApprovalSelector::Pending).await.ok()? {
            let id = &approval.approval_id;
            orchestrator.decide(id, Decision::AllowOnce, "me", None).await.ok()?;
        }
    }
}

fn busy(journal: Arc<dyn Journal>, tools: &Arc<Counting>) -> Orchestrator {
    let gate = Arc::new(Careful::default());
    Orchestrator::new(RuntimeDeps { gate, ..world(journal, tools, BUSY) })
}

#[tokio::test]
async fn questions_messages_and_repairs_survive_death_at_every_write() {
    let schema = r#"{"type":"object","required":["n"]}"#;
    let task =
        NewTask { output_schema: Some(RawJson::parse(schema).expect("JSON")), ..new_task("go") };
    let mut died = 0;
    for last in 0..30 {
        for death in [Death::Before, Death::After] {
            let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
            let mortal = Arc::new(Mortal::new(&journal, last, death));
            let first = busy(mortal.clone(), &tools);
            let whole = match first.invoke(task.clone()).await {
                Ok(accepted) => attended(&first, &accepted.task_id).await,
                Err(_) => None,
            };
            died += usize::from(whole.is_none());
            first.shutdown(Duration::from_secs(5)).await;
            let second = busy(journal.clone(), &tools);
            let recovered = second.recover().await.expect("a list");
            let place = format!("{death:?} write {last}");
            for task_id in recovered.begun.iter().chain(&recovered.waiting) {
                let state = attended(&second, task_id).await.expect("an end");
                assert_eq!(state.status, TaskStatus::Completed, "{place}: {:?}", state.detail);
                assert_eq!(state.detail, Some(serde_json::json!({"n": 1})), "{place}");
                let said = format!("{:?}", state.messages());
                assert_eq!(said.matches("by the way").count(), 1, "{place}");
            }
            let mut acts = tools.done().into_iter().filter(|(what, _)| what.starts_with("act"));
            assert!(acts.all(|(_, times)| times == 1), "{place}: {:?}", tools.done());
            check(&crate::world::events(&*journal).await, &place);
        }
    }
    assert!(died >= 20, "it died {died} times");
}

/// What must hold of any journal, wherever its process died.
fn check(events: &[Event], place: &str) {
    for (number, event) in (1..).zip(events) {
        assert_eq!((event.position.0, event.seq.0), (number, number), "{place}");
    }
    let ends = events.iter().filter(|event| event.body.ends_task()).count();
    assert!(ends <= 1, "{place}");
    let mut requested = BTreeMap::new();
    for event in events {
        if let EventBody::ApprovalRequested(request) = &event.body {
            let before = requested.insert(request.approval_id.clone(), 0);
            assert_eq!(before, None, "{place}");
        }
        if let EventBody::ApprovalDecided(decided) = &event.body {
            *requested.get_mut(&decided.approval_id).expect("it was asked") += 1;
        }
    }
    assert!(requested.values().all(|answers| *answers <= 1), "{place}: {requested:?}");
}
