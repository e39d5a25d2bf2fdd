//! Two callers with API keys: neither learns that a task of the other exists.

use antiphon_a2a_api::ExposedAgents;
use antiphon_test_server::agents_key;
use serde_json::{Value, json};

use crate::world::{World, error, message};

/// The parameters of a call about the task with an id.
type Params<'a> = &'a dyn Fn(&Value) -> Value;

/// A task of a key that does not end.
async fn stalling(world: &World, key: &str, id: &str) -> Value {
    let mut params = message(id, "stall");
    params["configuration"] = json!({ "returnImmediately": true });
    let sent = world.rpc_as(key, "SendMessage", params).await;
    assert!(sent["result"]["task"]["id"].is_string(), "{sent}");
    sent["result"]["task"].clone()
}

#[tokio::test]
async fn a_task_of_another_key_is_as_one_that_does_not_exist() {
    let world = World::with(ExposedAgents::AllOnLoopback, &["127.0.0.1:9"]).await;
    let [ada, eve] = world.keys.clone();
    let task = stalling(&world, &ada, "m1").await;
    let push = |id: &Value| json!({ "taskId": id, "id": "mine", "url": "http://127.0.0.1:9/" });
    let created = world.rpc_as(&ada, "CreateTaskPushNotificationConfig", push(&task["id"])).await;
    assert_eq!(created["result"]["id"], "mine", "{created}");
    let said = |id: &Value| {
        let mut params = message("m9", "more");
        params["message"]["taskId"] = id.clone();
        params
    };
    let one = |id: &Value| json!({ "id": id });
    let config = |id: &Value| json!({ "taskId": id, "id": "mine" });
    let of_task = |id: &Value| json!({ "taskId": id });
    let calls: [(&str, Params<'_>); 9] = [
        ("GetTask", &one),
        ("CancelTask", &one),
        ("SubscribeToTask", &one),
        ("SendMessage", &said),
        ("SendStreamingMessage", &said),
        ("CreateTaskPushNotificationConfig", &push),
        ("GetTaskPushNotificationConfig", &config),
        ("ListTaskPushNotificationConfigs", &of_task),
        ("DeleteTaskPushNotificationConfig", &config),
    ];
    let absent = json!("01970000-0000-7000-8000-000000000000");
    for (method, params) in calls {
        let hidden = world.rpc_as(&eve, method, params(&task["id"])).await;
        let none = world.rpc_as(&eve, method, params(&absent)).await;
        assert_eq!(error(&hidden).0, -32001, "{method}: {hidden}");
        assert_eq!(hidden, none, "{method}");
        let path = |id: &Value| format!("/a2a/helper/tasks/{}", id.as_str().unwrap());
        let hidden = world.http_as(&eve, "GET", &path(&task["id"]), None).await;
        let none = world.http_as(&eve, "GET", &path(&absent), None).await;
        assert_eq!((hidden.status, &hidden.body), (404, &none.body));
    }
    let listed = world.rpc_as(&eve, "ListTasks", json!({})).await;
    assert_eq!(listed["result"]["totalSize"], 0, "{listed}");
    let own = world.rpc_as(&ada, "GetTask", one(&task["id"])).await;
    assert_eq!(own["result"]["status"]["state"], "TASK_STATE_WORKING", "not canceled: {own}");
    let kept = world.rpc_as(&ada, "GetTaskPushNotificationConfig", config(&task["id"])).await;
    assert_eq!(kept["result"]["id"], "mine", "not deleted: {kept}");
    world.ended().await;
}

#[tokio::test]
async fn a_context_of_another_key_is_as_one_that_does_not_exist() {
    let world = World::new().await;
    let [ada, eve] = world.keys.clone();
    let sent = world.rpc_as(&ada, "SendMessage", message("m1", "hello")).await;
    let context = &sent["result"]["task"]["contextId"];
    let mut answers = Vec::new();
    for context in [context, &json!("01970000-0000-7000-8000-000000000000")] {
        let mut params = message("m2", "hello");
        params["message"]["contextId"] = context.clone();
        answers.push(world.rpc_as(&eve, "SendMessage", params).await);
        let listed = world.rpc_as(&eve, "ListTasks", json!({ "contextId": context })).await;
        assert_eq!(listed["result"]["totalSize"], 0, "{listed}");
    }
    assert_eq!(error(&answers[0]).0, -32602, "{answers:?}");
    assert_eq!(answers[0], answers[1]);
    world.ended().await;
}

/// The same `messageId` of two keys is two messages.
#[tokio::test]
async fn a_message_id_is_that_of_its_key() {
    let world = World::new().await;
    let [ada, eve] = world.keys.clone();
    let one = world.rpc_as(&ada, "SendMessage", message("m1", "hello")).await;
    let other = world.rpc_as(&eve, "SendMessage", message("m1", "hello")).await;
    assert_ne!(one["result"]["task"]["id"], other["result"]["task"]["id"]);
    world.ended().await;
}

/// More tasks of another key than a list reads at a time.
#[tokio::test]
async fn a_list_has_the_tasks_of_its_key_that_are_older_than_a_thousand_others() {
    let world = World::new().await;
    let [ada, eve] = world.keys.clone();
    let old = world.rpc_as(&ada, "SendMessage", message("m1", "hello")).await;
    let newer = antiphon_core::port::TaskQuery {
        which: antiphon_core::port::TaskSelector::All,
        limit: 1.try_into().unwrap(),
    };
    world.rpc_as(&eve, "SendMessage", message("m2", "hello")).await;
    let payer = world.orchestrator.tasks(newer).await.unwrap()[0].payer.clone();
    let mut creating = tokio::task::JoinSet::new();
    for _ in 0..1001 {
        let (orchestrator, payer) = (world.orchestrator.clone(), payer.clone());
        let model = antiphon_core::ModelRef::parse("scripted/test").unwrap();
        let said = antiphon_core::UserMessage::text("hello", chrono::Utc::now());
        let task = antiphon_runtime::NewTask {
            payer,
            ..antiphon_runtime::NewTask::new("helper".to_owned(), model, said)
        };
        creating.spawn(async move { orchestrator.invoke(task).await.unwrap() });
    }
    creating.join_all().await;
    let listed = world.rpc_as(&ada, "ListTasks", json!({})).await;
    assert_eq!(listed["result"]["totalSize"], 1, "{listed}");
    assert_eq!(listed["result"]["tasks"][0]["id"], old["result"]["task"]["id"]);
    let listed = world.rpc_as(&eve, "ListTasks", json!({ "pageSize": 1 })).await;
    assert_eq!(listed["result"]["totalSize"], 1002, "{listed}");
    world.ended().await;
}

/// As through the native API.
#[tokio::test]
async fn an_agents_key_cancels_no_task_and_sets_no_push_notifications() {
    let folder = tempfile::tempdir().unwrap();
    let agents = agents_key(folder.path(), "helper");
    let world = World::in_folder(folder, ExposedAgents::AllOnLoopback, &["127.0.0.1:9"]).await;
    let task = world.stalling("m1").await;
    let mut pushed = message("m2", "hello");
    pushed["configuration"] =
        json!({ "taskPushNotificationConfig": { "url": "http://127.0.0.1:9/" } });
    for (method, params) in [
        ("CancelTask", json!({ "id": task["id"] })),
        (
            "CreateTaskPushNotificationConfig",
            json!({ "taskId": task["id"], "url": "http://127.0.0.1:9/" }),
        ),
        ("DeleteTaskPushNotificationConfig", json!({ "taskId": task["id"], "id": "mine" })),
        ("SendMessage", pushed.clone()),
        ("SendStreamingMessage", pushed.clone()),
    ] {
        let refused = world.rpc_as(&agents, method, params).await;
        assert_eq!(error(&refused), (-32000, "PERMISSION_DENIED".to_owned()), "{method}");
    }
    let path = format!("/a2a/helper/tasks/{}:cancel", task["id"].as_str().unwrap());
    let refused = world.http_as(&agents, "POST", &path, Some(&json!({}))).await;
    assert_eq!(refused.status, 403, "{refused:?}");
    world.ended().await;
}
