//! Clients that go away, and what is read for those that stay.

use antiphon_core::TaskStatus;
use antiphon_core::port::{TaskQuery, TaskSelector};

use crate::world::{World, message};

#[tokio::test]
async fn a_task_goes_on_when_its_client_disconnects_while_it_is_created() {
    let world = World::new().await;
    world.journal.hold();
    let request = world.begin("SendMessage", message("m1", "hello")).await;
    world.journal.until_held().await;
    drop(request);
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
    let ended = world.orchestrator.wait(&task).await.unwrap();
    assert_eq!(ended.status, TaskStatus::Completed);
    world.ended().await;
}

/// More approvals of other tasks than one list had before, which are not read.
#[tokio::test]
async fn a_task_shows_its_approval_behind_many_of_other_tasks() {
    let world = World::new().await;
    for number in 0..210 {
        let mut params = message(&format!("other{number}"), "act");
        params["configuration"] = serde_json::json!({ "returnImmediately": true });
        world.rpc("SendMessage", params).await;
    }
    let pending = antiphon_core::port::ApprovalSelector::Pending;
    while world.orchestrator.approvals(pending.clone()).await.unwrap().len() < 210 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    world.journal.take_listed_approvals();
    let task = world.task("m1", "act").await;
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{task}");
    let id = &task["status"]["message"]["parts"][0]["data"]["approval"]["id"];
    let parts = &task["status"]["message"]["parts"];
    assert!(id.is_string() || parts.to_string().contains("\"approval\""), "{task}");
    let listed = world.journal.take_listed_approvals();
    assert!(listed <= 4, "only its own, a few times: {listed}");
    world.ended().await;
}
