//! Remote agents that are away for a while, or lose what they had.

use std::sync::Arc;

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_core::{EventBody, TaskStatus, WaitingFor};
use serde_json::json;

use crate::antiphon_agent::AntiphonAgent;
use crate::fake_agent::{Answer, FakeAgent, completed, task};
use crate::local::{Local, PATIENCE};

fn waits_for_peer(body: &EventBody) -> bool {
    matches!(body, EventBody::StatusChanged(change) if change.waiting_for == Some(WaitingFor::Peer))
}

#[tokio::test]
async fn a_task_waits_while_the_agent_is_away_and_then_goes_on() {
    let journal = Arc::new(MemoryJournal::new());
    let there = AntiphonAgent::at("127.0.0.1:0", Arc::clone(&journal)).await;
    let (address, card) = (there.url().replace("http://", ""), there.card());
    there.stop().await;
    let local = Local::new(&card);
    let task_id = local.start("hi").await;
    local.until(&task_id, waits_for_peer).await;
    let there = AntiphonAgent::at(&address, journal).await;
    let state = local.ended(&task_id).await;
    assert_eq!(state.detail, Some(json!("You said hi")));
    assert_eq!(there.tasks().await.len(), 1);
    local.stop().await;
    there.stop().await;
}

#[tokio::test]
async fn a_task_that_runs_waits_out_a_restart_of_the_agent() {
    let journal = Arc::new(MemoryJournal::new());
    let there = AntiphonAgent::at("127.0.0.1:0", Arc::clone(&journal)).await;
    let (address, card) = (there.url().replace("http://", ""), there.card());
    let local = Local::new(&card);
    let task_id = local.start("stall").await;
    local.until(&task_id, |body| matches!(body, EventBody::Relayed(_))).await;
    let remote = there.only_task().await;
    there.stop().await;
    local.until(&task_id, waits_for_peer).await;
    let there = AntiphonAgent::at(&address, journal).await;
    there.orchestrator.cancel(&remote).await.unwrap();
    assert_eq!(local.ended(&task_id).await.status, TaskStatus::Canceled);
    assert_eq!(there.only_task().await, remote, "it was not sent again");
    local.stop().await;
    there.stop().await;
}

#[tokio::test]
async fn a_cancel_is_repeated_until_the_agent_confirms_it() {
    let fake =
        FakeAgent::new(|request, before| match (request["method"].as_str().unwrap(), before) {
            ("SendStreamingMessage", _) => Answer::Open(vec![json!({ "task": task("WORKING") })]),
            ("CancelTask", 0..3) => Answer::Raw(503, "busy".to_owned()),
            ("CancelTask", _) => Answer::Result(task("CANCELED")),
            _ => Answer::Result(task("WORKING")),
        });
    let fake = fake.await;
    let local = Local::new(&fake.url);
    let task_id = local.start("hi").await;
    local.until(&task_id, |body| matches!(body, EventBody::Relayed(_))).await;
    local.orchestrator.cancel(&task_id).await.unwrap();
    assert_eq!(local.ended(&task_id).await.status, TaskStatus::Canceled, "at once here");
    let limit = std::num::NonZeroUsize::MAX;
    let roots = TaskQuery { which: TaskSelector::Roots, limit };
    let tasks = local.orchestrator.tasks(roots).await.unwrap();
    let order = tasks.iter().find(|found| found.task_id != task_id);
    if let Some(order) = order {
        let done = local.orchestrator.wait(&order.task_id);
        let done = tokio::time::timeout(PATIENCE, done).await.unwrap().unwrap();
        assert_eq!(done.status, TaskStatus::Completed);
    }
    let canceled = fake.requests("CancelTask");
    assert!(canceled.len() >= 4, "{canceled:?}");
    assert!(canceled.iter().all(|params| params["id"] == "t1"), "{canceled:?}");
    local.stop().await;
}

#[tokio::test]
async fn an_agent_that_lost_the_task_fails_it() {
    let fake = FakeAgent::new(|request, _| match request["method"].as_str().unwrap() {
        "SendStreamingMessage" => Answer::Events(vec![json!({ "task": task("WORKING") })]),
        _ => Answer::Error(-32001),
    });
    let fake = fake.await;
    let local = Local::new(&fake.url);
    let (code, error) = local.failure("hi").await;
    assert_eq!(code, "runner_refused");
    assert!(error.contains("has lost the task"), "{error}");
    local.stop().await;
}

#[tokio::test]
async fn errors_of_the_agents_server_are_an_outage() {
    let fake =
        FakeAgent::new(|request, before| match (request["method"].as_str().unwrap(), before) {
            ("SendStreamingMessage", 0..4) => Answer::Raw(502, "<html>".to_owned()),
            ("SendStreamingMessage", 4) => Answer::Error(-32603),
            ("SendStreamingMessage", _) => Answer::Events(vec![json!({ "task": completed("ok") })]),
            _ => Answer::Result(completed("ok")),
        });
    let fake = fake.await;
    let local = Local::new(&fake.url);
    let task_id = local.start("hi").await;
    assert_eq!(local.ended(&task_id).await.detail, Some(json!("ok")));
    let ids: Vec<_> = fake.requests("SendStreamingMessage");
    assert!(ids.iter().all(|params| params["message"]["messageId"] == json!(task_id)), "one id");
    local.stop().await;
}
