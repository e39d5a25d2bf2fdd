//! What becomes of a task that nothing happens to.

use std::sync::Arc;

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::port::{Journal, Runner};
use antiphon_core::{Event, Message, Provider, TaskStatus};
use antiphon_runtime::Orchestrator;
use serde_json::Value;

use crate::bench::{Bench, calls, ends, events, eventually, new_task, scripted, world};
use crate::model::PiecewiseModel;
use crate::tools::BenchTools;

/// Three steps: calls side by side, calls one after the other, a tool that is not there.
pub(crate) const LAPS: &str = r#"
name = "test"
[[reply]]
when = { turn = 0 }
[[reply.step]]
thinking = "I should look first."
signature = "c2lnbmVk"
[[reply.step]]
text = "Looking."
[[reply.step]]
call = { name = "look", arguments = { on = "a" } }
[[reply.step]]
call = { name = "look", arguments = { on = "b" } }
[[reply.step]]
call = { name = "act", arguments = { on = "1" } }
[[reply]]
when = { turn = 1 }
steps = [{ call = { name = "act", arguments = { on = "2" } } }, { call = { name = "nowhere" } }]
[[reply]]
when = { turn = 2 }
steps = [{ call = { name = "act", arguments = { on = "3" } } }]
[[reply]]
steps = [{ text = "All done." }]
"#;

/// Events without what differs from one time to the next.
fn reported(events: &[Event]) -> Vec<(String, Value)> {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for name in ["agent_id", "timestamp", "session_id"] {
                    fields.remove(name);
                }
                fields.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let reported = |event: &Event| {
        let mut data = serde_json::to_value(&event.body).unwrap();
        strip(&mut data);
        (event.body.event_type().to_owned(), data)
    };
    events.iter().map(reported).collect()
}

#[tokio::test]
async fn a_task_in_a_worker_is_the_same_as_at_home() {
    let bench = Bench::new(LAPS);
    let state = bench.whole().await;
    assert_eq!(state.status, TaskStatus::Completed);
    assert_eq!(bench.lines("acts"), ["1", "2", "3"]);
    let away = events(&*bench.journal).await;

    let home = tempfile::tempdir().unwrap();
    let tools = BenchTools { root: home.path().to_owned(), token: bench.token.clone() };
    let journal = Arc::new(MemoryJournal::new());
    let shared = Arc::clone(&journal) as Arc<dyn Journal>;
    let local = Orchestrator::new(world(shared, scripted(LAPS), Arc::new(tools)));
    let task_id = local.invoke(new_task("go")).await.unwrap().task_id;
    local.wait(&task_id).await.unwrap();
    assert_eq!(reported(&away), reported(&events(&*journal).await));
    bench.assert_clean();
}

#[tokio::test]
async fn an_answer_reaches_the_worker_as_it_comes() {
    let (model, say) = PiecewiseModel::new();
    let bench = Bench::with(Arc::new(model), |_| {});
    let task_id = bench.accept().await;
    let run = bench.runner.run(bench.run(&task_id));
    let talk = async {
        for word in ["one ", "two ", "three"] {
            say.send(word.to_owned()).await.unwrap();
            let received = || bench.lines("heard").concat().ends_with(word);
            eventually("a word is heard before the next is said", received).await;
        }
        drop(say);
    };
    let (ran, ()) = tokio::join!(run, talk);
    ran.unwrap();
    assert_eq!(bench.state(&task_id).await.status, TaskStatus::Completed);
}

#[tokio::test]
async fn a_long_answer_arrives_whole() {
    let script = r#"
name = "test"
chunk_chars = 1
[[reply]]
steps = [{ text = "0123456789", repeat = 2000 }]
"#;
    let bench = Bench::new(script);
    let state = bench.whole().await;
    let Message::Assistant(answer) = &**state.messages().last().unwrap() else { unreachable!() };
    assert_eq!(answer.text(), "0123456789".repeat(2000));
}

#[tokio::test]
async fn a_failure_of_the_model_is_the_same_failure_in_the_worker() {
    let script = r#"
name = "test"
[[reply]]
steps = [{ error = { kind = "permission", message = "not with this key" } }]
"#;
    let bench = Bench::new(script);
    let state = bench.whole().await;
    assert_eq!(state.status, TaskStatus::Failed);
    let events = events(&*bench.journal).await;
    let detail = serde_json::to_string(&events.last().unwrap().body).unwrap();
    assert!(detail.contains("permission") && detail.contains("not with this key"), "{detail}");
}

#[tokio::test]
async fn a_task_that_goes_on_with_another_reads_what_was_said_there() {
    let bench = Bench::new(&calls("look", serde_json::json!({ "on": "x" })));
    let first = bench.whole().await;
    let script = "name = 'test'\n[[reply]]\nwhen = { turn = 2 }\nsteps = [{ text = 'again' }]\n";
    let provider: Arc<dyn Provider> = scripted(script);
    let bench = Bench { provider, ..bench };
    let seq = first.seq;
    let history = antiphon_core::HistoryRef { task_id: first.task_id.clone(), seq };
    let before = antiphon_runtime::PriorHistory::Task(history);
    let task = antiphon_runtime::NewTask { before, ..new_task("and now?") };
    let task_id = bench.keeper().invoke(task).await.unwrap().task_id;
    bench.once(&task_id).await.unwrap();
    let state = bench.state(&task_id).await;
    assert_eq!(state.status, TaskStatus::Completed);
    assert_eq!(state.messages().len(), first.messages().len() + 2);
}

#[tokio::test]
async fn a_task_that_has_ended_is_left_alone() {
    let bench = Bench::new(LAPS);
    let state = bench.whole().await;
    let before = events(&*bench.journal).await;
    bench.once(&state.task_id).await.unwrap();
    let after = events(&*bench.journal).await;
    assert_eq!(after, before);
    assert_eq!(ends(&after), [TaskStatus::Completed]);
}
