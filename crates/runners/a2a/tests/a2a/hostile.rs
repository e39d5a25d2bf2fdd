//! Remote agents that do what they should not. Each is refused with a clear text, and its task is canceled there.

use std::num::NonZeroU32;

use antiphon_core::{TaskLimits, TaskStatus};
use antiphon_runtime::NewTask;
use serde_json::{Value, json};

use crate::fake_agent::{Answer, FakeAgent, chunk, completed, said, status_event, task};
use crate::local::{Local, new_task};

/// A task at an agent whose stream has these events fails with an error that has these words.
async fn refused(events: Vec<Value>, words: &str) {
    let fake = FakeAgent::new(move |request, _| match request["method"].as_str().unwrap() {
        "SendStreamingMessage" => Answer::Open(events.clone()),
        "CancelTask" => Answer::Result(task("CANCELED")),
        _ => Answer::Result(task("WORKING")),
    });
    refused_by(fake.await, words).await;
}

async fn refused_by(fake: FakeAgent, words: &str) {
    let local = Local::new(&fake.url);
    let (code, error) = local.failure("hi").await;
    assert_eq!(code, "runner_refused", "{error}");
    assert!(error.contains(words) && error.len() < 800, "{words}: {error}");
    local.stop().await;
}

#[tokio::test]
async fn an_event_of_another_task_is_refused() {
    let mut other = task("WORKING");
    other["id"] = json!("t2");
    let first = json!({ "task": task("WORKING") });
    refused(vec![first.clone(), status_event(&other)], "another task").await;
    refused(vec![first.clone(), json!({ "task": other.clone() })], "another task").await;
    let mut foreign = said("m", "hi");
    foreign["taskId"] = json!("t2");
    refused(vec![first, json!({ "message": foreign })], "another task").await;
}

#[tokio::test]
async fn an_answer_about_another_task_is_refused() {
    let fake = FakeAgent::new(|request, _| match request["method"].as_str().unwrap() {
        "SendStreamingMessage" => Answer::Events(vec![json!({ "task": task("WORKING") })]),
        _ => {
            let mut other = completed("not yours");
            other["id"] = json!("t2");
            Answer::Result(other)
        }
    });
    refused_by(fake.await, "another task").await;
}

#[tokio::test]
async fn garbage_is_refused() {
    let first = json!({ "task": task("WORKING") });
    for garbage in [
        json!({ "nonsense": true }),
        json!([1, 2]),
        json!({ "statusUpdate": { "taskId": 7 } }),
        json!({ "task": { "id": "t1", "contextId": "c", "status": { "state": "DONE" } } }),
    ] {
        refused(vec![first.clone(), garbage.clone()], "not one of A2A").await;
        refused(vec![garbage], "not one of A2A").await;
    }
    for id in ["", "white space", &"x".repeat(5000)] {
        let mut task = task("WORKING");
        task["id"] = json!(id);
        refused(vec![json!({ "task": task })], "the id of its task").await;
    }
    let fake = FakeAgent::new(|_, _| Answer::Raw(200, "<html>".to_owned())).await;
    refused_by(fake, "not one of A2A").await;
}

#[tokio::test]
async fn too_much_is_refused() {
    let first = json!({ "task": task("WORKING") });
    let long = "x".repeat(1024 * 1024);
    let mut events = vec![first.clone()];
    events.extend((0..9).map(|_| chunk(&long, true)));
    refused(events, "8388608 bytes").await;
    let event = chunk(&"x".repeat(9 * 1024 * 1024), false);
    refused(vec![first, event], "8388608 bytes").await;
    let fake = FakeAgent::new(|request, _| match request["method"].as_str().unwrap() {
        "SendStreamingMessage" => Answer::Events(vec![json!({ "task": task("WORKING") })]),
        _ => Answer::Raw(200, " ".repeat(17 * 1024 * 1024)),
    });
    refused_by(fake.await, "16777216 bytes").await;
}

#[tokio::test]
async fn endless_messages_are_refused() {
    let mut events = vec![json!({ "task": task("WORKING") })];
    events
        .extend((0..1100).map(|number| json!({ "message": said(&format!("m{number}"), "again") })));
    refused(events, "more than 1000 messages").await;
}

#[tokio::test]
async fn an_endless_stream_ends_with_the_time_of_the_task_and_is_canceled_there() {
    let fake = FakeAgent::new(|request, _| match request["method"].as_str().unwrap() {
        "SendStreamingMessage" => Answer::Endless(json!({ "task": task("WORKING") })),
        _ => Answer::Result(task("WORKING")),
    });
    let fake = fake.await;
    let local = Local::new(&fake.url);
    let limits = TaskLimits { wall_clock_s_max: NonZeroU32::new(1), ..TaskLimits::default() };
    let task = NewTask { limits, ..new_task("hi") };
    let task_id = local.orchestrator.invoke(task).await.unwrap().task_id;
    let state = local.ended(&task_id).await;
    assert_eq!(state.status, TaskStatus::Failed, "{:?}", state.detail);
    let canceled = async {
        while fake.requests("CancelTask").is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(crate::local::PATIENCE, canceled).await.expect("it is canceled there");
    local.stop().await;
}

#[tokio::test]
async fn an_end_that_the_task_does_not_confirm_does_not_count() {
    let fake =
        FakeAgent::new(|request, before| match (request["method"].as_str().unwrap(), before) {
            ("SendStreamingMessage", _) => Answer::Open(vec![
                json!({ "task": task("WORKING") }),
                status_event(&task("COMPLETED")),
                status_event(&task("FAILED")),
                status_event(&task("COMPLETED")),
            ]),
            ("GetTask", 0 | 1) => Answer::Result(task("WORKING")),
            _ => Answer::Result(completed("Truly.")),
        });
    let fake = fake.await;
    let local = Local::new(&fake.url);
    let task_id = local.start("hi").await;
    let state = local.ended(&task_id).await;
    assert_eq!(
        (state.status, state.detail.clone()),
        (TaskStatus::Completed, Some(json!("Truly.")))
    );
    local.stop().await;
}

#[tokio::test]
async fn redirects_are_not_followed_and_credentials_matter() {
    for (status, words) in [(307, "redirects"), (401, "credentials"), (404, "HTTP 404")] {
        let fake = FakeAgent::new(move |_, _| Answer::Raw(status, "{}".to_owned())).await;
        refused_by(fake, words).await;
        let fake = FakeAgent::new(|_, _| Answer::Error(-32601)).await.with_card(status, "{}");
        refused_by(fake, words).await;
    }
    let fake = FakeAgent::new(|_, _| Answer::Error(-32009)).await;
    refused_by(fake, "does not speak A2A 1.0").await;
}
