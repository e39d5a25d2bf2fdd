//! Tasks that a remote agent completes: over both bindings, with and without streams, across restarts of either side.

use std::sync::Arc;

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::{EventBody, HistoryRef, RunsOn, StreamEvent, TaskStatus};
use antiphon_runtime::{DeltaEvent, PriorHistory, SerializedDelta, WatchedDelta};
use serde_json::{Value, json};

use crate::antiphon_agent::AntiphonAgent;
use crate::fake_agent::{
    Answer, FakeAgent, card, chunk, completed, said, saying, status_event, task,
};
use crate::local::{Local, PATIENCE, new_task, runner, texts};

#[tokio::test]
async fn another_antiphon_does_the_task_and_its_result_is_ours() {
    let there = AntiphonAgent::new().await;
    let local = Local::new(&there.card());
    let task_id = local.start("hi").await;
    let state = local.ended(&task_id).await;
    assert_eq!(state.status, TaskStatus::Completed, "{:?}", state.detail);
    assert_eq!(state.detail, Some(json!("You said hi")));
    assert_eq!(texts(&state), ["user: hi", "agent: You said hi"]);
    let relayed = state.relayed.unwrap();
    assert_eq!(relayed.task_id, there.only_task().await);
    let place = RunsOn { runner: "a2a".to_owned(), peer: Some("there".to_owned()) };
    assert_eq!(local.summary(&task_id).await.runs_on, place);
    local.stop().await;
    there.stop().await;
}

#[tokio::test]
async fn the_first_interface_that_is_spoken_is_used() {
    let there = AntiphonAgent::new().await;
    for binding in ["JSONRPC", "HTTP+JSON"] {
        let fake = FakeAgent::new(|_, _| Answer::Error(-32601)).await;
        let mut text = card(&fake.url, true);
        let url = format!("{}/a2a/helper", there.url());
        text["supportedInterfaces"] = json!([
            { "url": "https://agents.example", "protocolBinding": "GRPC", "protocolVersion": "1.0" },
            { "url": "https://agents.example", "protocolBinding": binding, "protocolVersion": "0.3" },
            { "url": url, "protocolBinding": binding, "protocolVersion": "1.0" },
        ]);
        let fake = fake.with_card(200, text.to_string());
        let hosts = [there.url().replace("http://", "")];
        let runner = runner(&fake.url, &[hosts[0].as_str()]);
        let local = Local::with(runner, Arc::new(MemoryJournal::new()));
        let task_id = local.start(binding).await;
        let state = local.ended(&task_id).await;
        assert_eq!(state.detail, Some(json!(format!("You said {binding}"))));
        // A stream that goes on, and a cancel, over the same binding.
        let task_id = local.start("stall").await;
        local.until_status(&task_id, TaskStatus::Running).await;
        local.orchestrator.cancel(&task_id).await.unwrap();
        assert_eq!(local.ended(&task_id).await.status, TaskStatus::Canceled);
        local.stop().await;
    }
    for task in there.tasks().await {
        assert!(task.status.is_terminal(), "{task:?}");
    }
    there.stop().await;
}

#[tokio::test]
async fn the_text_is_shown_while_the_agent_writes_it() {
    let first = json!({ "task": task("WORKING") });
    let fake = FakeAgent::new(move |request, _| match request["method"].as_str().unwrap() {
        "SendStreamingMessage" => Answer::Open(vec![
            first.clone(),
            chunk("wrong", false),
            chunk("Hel", false),
            chunk("lo", true),
            status_event(&completed("Hello")),
        ]),
        _ => Answer::Result(completed("Hello")),
    });
    let fake = fake.await;
    let local = Local::new(&fake.url);
    let mut deltas = local.orchestrator.deltas();
    let task_id = local.start("hi").await;
    assert_eq!(local.ended(&task_id).await.detail, Some(json!("Hello")));
    let mut shown = Vec::new();
    while let Some(WatchedDelta::Delta(delta)) = deltas.try_recv() {
        match SerializedDelta::into_value(delta).event {
            DeltaEvent::Answer(StreamEvent::TextDelta { delta }) => shown.push(delta),
            DeltaEvent::State(_) => shown.push("anew".to_owned()),
            other @ (DeltaEvent::Answer(_) | DeltaEvent::Tool(_)) => panic!("{other:?}"),
        }
    }
    assert_eq!(shown, ["wrong", "anew", "Hel", "lo"]);
    local.stop().await;
}

#[tokio::test]
async fn a_message_is_recorded_once_however_it_is_told() {
    // In the status, in the history after the stream broke, and again in the stream.
    let working = |history: &[Value]| {
        let mut task = task("WORKING");
        task["history"] = json!(history);
        task
    };
    let all = [said("m1", "One."), said("m2", "Two."), said("m3", "Three.")];
    let mine = json!({ "messageId": "u", "role": "ROLE_USER", "parts": [{ "text": "FROM USER" }] });
    let history = [mine, all[0].clone(), all[1].clone()];
    let fake = FakeAgent::new(move |request, before| {
        match (request["method"].as_str().unwrap(), before) {
            ("SendStreamingMessage", _) => Answer::Events(vec![
                json!({ "task": task("SUBMITTED") }),
                status_event(&saying("WORKING", "m1", "One.")),
            ]),
            ("SubscribeToTask", _) => Answer::Open(vec![
                json!({ "task": working(&history) }),
                status_event(&saying("WORKING", "m2", "Two.")),
                status_event(&saying("WORKING", "m3", "Three.")),
                status_event(&task("COMPLETED")),
                status_event(&task("COMPLETED")),
            ]),
            ("GetTask", 0 | 1) => Answer::Result(working(&history)),
            _ => Answer::Result(saying("COMPLETED", "m3", "Three.")),
        }
    });
    let fake = fake.await;
    let local = Local::new(&fake.url);
    let task_id = local.start("hi").await;
    let state = local.ended(&task_id).await;
    assert_eq!(texts(&state), ["user: hi", "agent: One.", "agent: Two.", "agent: Three."]);
    assert_eq!(state.detail, Some(json!("Three.")));
    local.stop().await;
}

#[tokio::test]
async fn an_agent_without_streams_is_asked_until_it_is_done() {
    let fake =
        FakeAgent::new(|request, before| match (request["method"].as_str().unwrap(), before) {
            ("SendMessage", _) => Answer::Result(json!({ "task": task("SUBMITTED") })),
            ("GetTask", 0 | 1) => Answer::Result(task("WORKING")),
            ("GetTask", _) => Answer::Result(completed("late")),
            _ => Answer::Error(-32601),
        });
    let fake = fake.await.polled();
    let local = Local::new(&fake.url);
    let task_id = local.start("hi").await;
    assert_eq!(local.ended(&task_id).await.detail, Some(json!("late")));
    let sent = fake.requests("SendMessage");
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0]["message"]["messageId"], json!(task_id), "the id of the task");
    assert_eq!(sent[0]["configuration"]["returnImmediately"], true);
    local.stop().await;
}

#[tokio::test]
async fn an_agent_may_answer_at_once() {
    let fake = FakeAgent::new(|request, _| match request["method"].as_str().unwrap() {
        "SendStreamingMessage" => Answer::Events(vec![json!({ "message": said("m", "Done.") })]),
        _ => Answer::Error(-32601),
    });
    let fake = fake.await;
    let local = Local::new(&fake.url);
    let task_id = local.start("hi").await;
    let state = local.ended(&task_id).await;
    assert_eq!((state.status, state.detail.clone()), (TaskStatus::Completed, Some(json!("Done."))));
    local.stop().await;
}

#[tokio::test]
async fn the_next_task_of_a_session_continues_the_context() {
    let there = AntiphonAgent::new().await;
    let local = Local::new(&there.card());
    let first = local.start("one").await;
    let before = local.ended(&first).await;
    let session_id = Some(before.created.session_id.clone());
    let history = PriorHistory::Task(HistoryRef { task_id: first, seq: before.seq });
    let next = antiphon_runtime::NewTask { session_id, before: history, ..new_task("two") };
    let next = local.orchestrator.invoke(next).await.unwrap().task_id;
    assert_eq!(local.ended(&next).await.detail, Some(json!("You said two")));
    let tasks = there.tasks().await;
    assert_eq!(tasks.len(), 2);
    assert_eq!(tasks[0].session_id, tasks[1].session_id, "one context there");
    local.stop().await;
    there.stop().await;
}

#[tokio::test]
async fn an_orchestrator_that_restarts_follows_the_same_task() {
    let there = AntiphonAgent::new().await;
    let journal = Arc::new(MemoryJournal::new());
    let first = Local::with(runner(&there.card(), &[]), Arc::clone(&journal));
    let task_id = first.start("stall").await;
    first.until(&task_id, |body| matches!(body, EventBody::Relayed(_))).await;
    first.stop().await;
    let remote = there.only_task().await;
    let second = Local::with(runner(&there.card(), &[]), journal);
    second.orchestrator.recover().await.unwrap();
    there.orchestrator.cancel(&remote).await.unwrap();
    assert_eq!(second.ended(&task_id).await.status, TaskStatus::Canceled, "as it ended there");
    assert_eq!(there.tasks().await.len(), 1);
    second.stop().await;
    there.stop().await;
}

#[tokio::test]
async fn a_cancel_here_cancels_there() {
    let there = AntiphonAgent::new().await;
    let local = Local::new(&there.card());
    let task_id = local.start("stall").await;
    local.until(&task_id, |body| matches!(body, EventBody::Relayed(_))).await;
    local.orchestrator.cancel(&task_id).await.unwrap();
    assert_eq!(local.ended(&task_id).await.status, TaskStatus::Canceled);
    let remote = there.only_task().await;
    let ended = tokio::time::timeout(PATIENCE, there.orchestrator.wait(&remote)).await;
    assert_eq!(ended.unwrap().unwrap().status, TaskStatus::Canceled);
    local.stop().await;
    there.stop().await;
}

#[tokio::test]
async fn a_failure_there_is_a_failure_here_with_its_words() {
    let there = AntiphonAgent::new().await;
    let local = Local::new(&there.card());
    let (code, error) = local.failure("break").await;
    assert_eq!(code, "remote_failed");
    assert!(error.contains("`there`") && error.contains("it broke"), "{error}");
    local.stop().await;
    there.stop().await;
}

#[tokio::test]
async fn a_result_has_to_fit_the_schema_of_the_task() {
    for (text, fits) in [("{\"n\":1}", true), ("{\"n\":\"x\"}", false), ("no JSON", false)] {
        let fake = FakeAgent::new(move |request, _| match request["method"].as_str().unwrap() {
            "SendStreamingMessage" => Answer::Events(vec![json!({ "task": completed(text) })]),
            _ => Answer::Result(completed(text)),
        });
        let fake = fake.await;
        let local = Local::new(&fake.url);
        let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#;
        let output_schema = Some(antiphon_core::RawJson::parse(schema).unwrap());
        let task = antiphon_runtime::NewTask { output_schema, ..new_task("hi") };
        let task_id = local.orchestrator.invoke(task).await.unwrap().task_id;
        let state = local.ended(&task_id).await;
        if fits {
            assert_eq!(state.detail, Some(json!({ "n": 1 })));
        } else {
            assert_eq!(state.detail.unwrap()["code"], "remote_failed", "{text}");
        }
        let sent = fake.requests("SendStreamingMessage");
        let parts = sent[0]["message"]["parts"].as_array().unwrap();
        assert!(parts[1]["text"].as_str().unwrap().ends_with(schema), "{parts:?}");
        local.stop().await;
    }
}
