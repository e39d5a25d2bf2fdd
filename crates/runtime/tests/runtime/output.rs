//! Results that have to fit a schema.

use std::sync::Arc;

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::{RawJson, TaskStatus};
use antiphon_runtime::{NewTask, OrchestratorError, TaskState};
use serde_json::json;

use crate::world::{Counting, new_task, orchestrator};

const SCHEMA: &str = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;

async fn delivered(script: &str) -> TaskState {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let orchestrator = orchestrator(journal, &tools, script);
    let output_schema = Some(RawJson::parse(SCHEMA).expect("JSON"));
    let task = NewTask { output_schema, ..new_task("go") };
    let task_id = orchestrator.invoke(task).await.expect("accepted").task_id;
    orchestrator.wait(&task_id).await.expect("an end")
}

fn text(text: &str) -> String {
    format!("name = \"test\"\n[[reply]]\nstep = [{{ text = '''{text}''' }}]\n")
}

#[tokio::test]
async fn json_in_a_text_or_a_fence_is_a_result() {
    for answer in [r#"{"n":1}"#, "```json\n{\"n\":1}\n```", "```\n{\"n\": 1}```"] {
        let state = delivered(&text(answer)).await;
        assert_eq!((state.status, state.detail), (TaskStatus::Completed, Some(json!({"n": 1}))));
        assert_eq!(state.rejected, 0);
    }
}

#[tokio::test]
async fn a_model_gets_to_mend_its_result() {
    let script = r#"
name = "test"
[[reply]]
when = { turn = 0 }
step = [{ text = "One, I think." }]
[[reply]]
when = { turn = 1 }
step = [{ call = { name = "final", arguments_json = '{"result":{"n":"one"}}' } }]
[[reply]]
step = [{ call = { name = "final", arguments_json = '{"result":{"n":1}}' } }]
"#;
    let state = delivered(script).await;
    assert_eq!(
        (state.status, state.detail.clone()),
        (TaskStatus::Completed, Some(json!({"n": 1})))
    );
    assert_eq!((state.rejected, state.turns), (2, 3));
    let reported = format!("{:?}", state.messages());
    assert!(reported.contains("is not of type"), "{reported}");
}

#[tokio::test]
async fn mending_is_bounded() {
    let state = delivered(&text("no")).await;
    assert_eq!((state.status, state.rejected), (TaskStatus::Failed, 3));
    assert_eq!(state.detail.expect("a reason")["code"], "invalid_output");
}

#[tokio::test]
async fn a_schema_that_is_none_is_refused_before_anything_is_written() {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let orchestrator = orchestrator(journal.clone(), &tools, &text("x"));
    let output_schema = Some(RawJson::parse(r#"{"type":"nonsense"}"#).expect("JSON"));
    let refused = orchestrator.invoke(NewTask { output_schema, ..new_task("go") }).await;
    assert!(matches!(refused, Err(OrchestratorError::BadSchema { .. })), "{refused:?}");
    assert!(crate::world::events(&*journal).await.is_empty());
}
