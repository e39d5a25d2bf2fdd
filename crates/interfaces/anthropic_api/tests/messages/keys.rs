//! Credentials, clients that go away, and the agents that a client sees.

use antiphon_core::TaskStatus;
use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_interface_transport::{ExposedAgents, ServerLimits};
use antiphon_test_server::TOKEN;
use serde_json::{Value, json};

use crate::world::{World, message, request};

#[tokio::test]
async fn a_key_is_sent_as_x_api_key_or_as_a_bearer() {
    let world = World::new().await;
    let text = request("", &message(&json!("hello")));
    let header = format!("x-api-key: {TOKEN}");
    let key = &world.keys[0];
    for good in [
        header.clone(),
        format!("x-api-key: {key}"),
        format!("authorization: Bearer {TOKEN}"),
        format!("authorization: Bearer {key}"),
    ] {
        let reply = world.say(&text.replacen(&header, &good, 1)).await;
        assert_eq!(reply.status, 200, "{good}: {reply:?}");
        assert_eq!(reply.json()["content"][0]["text"], "You said hello");
    }
    for bad in [
        "x-not: there".to_owned(),
        "x-api-key: ".to_owned(),
        "x-api-key: 00000000000000000000000000000000".to_owned(),
        format!("x-api-key: {TOKEN}x"),
        format!("x-api-key: Bearer {TOKEN}"),
    ] {
        let reply = world.say(&text.replacen(&header, &bad, 1)).await;
        assert_eq!((reply.status, reply.error().as_str()), (401, "authentication_error"), "{bad}");
    }
    world.ended().await;
}

/// The client leaves while the creation of its task is written.
async fn leaves_during_creation(more: &str) -> TaskStatus {
    let world = World::new().await;
    world.journal.hold();
    let socket = world.begin(&request(more, &message(&json!("slow")))).await;
    world.journal.until_held().await;
    drop(socket);
    // The server learns of the disconnect before the journal answers.
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    world.journal.release();
    let task = loop {
        let query = TaskQuery { which: TaskSelector::All, limit: 10.try_into().unwrap() };
        if let Some(task) = world.orchestrator.tasks(query).await.unwrap().pop() {
            break task.task_id;
        }
        tokio::task::yield_now().await;
    };
    let status = world.orchestrator.wait(&task).await.unwrap().status;
    world.ended().await;
    status
}

#[tokio::test]
async fn a_client_that_leaves_while_its_task_is_created_cancels_it_unless_it_continues() {
    for (more, expected) in [
        ("idempotency-key: k\r\n", TaskStatus::Completed),
        ("x-antiphon-continue: true\r\n", TaskStatus::Completed),
        ("", TaskStatus::Canceled),
    ] {
        assert_eq!(leaves_during_creation(more).await, expected, "{more}");
    }
}

#[tokio::test]
async fn an_agent_that_is_not_shown_is_as_one_that_does_not_exist() {
    let named = |model: &str| -> Value {
        let mut body = message(&json!("hello"));
        body["model"] = json!(model);
        body
    };
    let world = World::new().await;
    assert_eq!(world.say(&request("", &named("helper"))).await.status, 200);
    world.ended().await;
    let world = World::with(ExposedAgents::Listed(Vec::new()), ServerLimits::default()).await;
    for model in ["helper", "nobody"] {
        let reply = world.say(&request("", &named(model))).await;
        assert_eq!((reply.status, reply.error().as_str()), (404, "not_found_error"));
    }
    assert_eq!(world.say(&request("", &named("scripted/test"))).await.status, 200);
    world.ended().await;
}
