//! Push notifications: configurations, delivery, where they may not go, and whose they are.

use std::sync::Arc;

use antiphon_keys::KeyRing;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use antiphon_a2a_api::ExposedAgents;

use crate::world::{World, error, message};

/// Receives one notification and answers with `status`.
async fn receive(listener: &TcpListener, status: &str) -> (String, Value) {
    let receiving = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut bytes = Vec::new();
        loop {
            let mut chunk = [0; 4096];
            let count = socket.read(&mut chunk).await.unwrap();
            bytes.extend_from_slice(&chunk[..count]);
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let head = head.to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.unwrap().parse::<usize>().unwrap() {
                let answer =
                    format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                socket.write_all(answer.as_bytes()).await.unwrap();
                return (head, serde_json::from_str(body).unwrap());
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(15), receiving).await.unwrap()
}

#[tokio::test]
async fn updates_are_delivered_in_order_and_again_when_they_were_not_received() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let world = World::with(ExposedAgents::AllOnLoopback, &[&host]).await;
    let mut params = message("m1", "slow");
    params["configuration"] = json!({ "returnImmediately": true, "taskPushNotificationConfig": {
        "url": format!("http://{host}/hook"), "token": "secret-token",
        "authentication": { "scheme": "Bearer", "credentials": "abc" },
    }});
    let task = world.rpc("SendMessage", params).await["result"]["task"].clone();
    let (head, first) = receive(&listener, "500 Not now").await;
    assert!(head.contains("x-a2a-notification-token: secret-token"), "{head}");
    assert!(head.contains("authorization: bearer abc"), "{head}");
    assert!(head.contains("content-type: application/a2a+json"), "{head}");
    assert_eq!(first["task"]["id"], task["id"], "{first}");
    let (_, again) = receive(&listener, "200 OK").await;
    assert_eq!(again, first);
    let mut updates = Vec::new();
    loop {
        let (_, update) = receive(&listener, "204 No Content").await;
        let state = update["statusUpdate"]["status"]["state"].clone();
        updates.push(update);
        if state == "TASK_STATE_COMPLETED" {
            break;
        }
    }
    let artifact = &updates[updates.len() - 2]["artifactUpdate"]["artifact"];
    assert_eq!(artifact["parts"][0]["text"], "At last.", "{updates:?}");
    world.ended().await;
}

#[tokio::test]
async fn configurations_are_stored_listed_and_deleted() {
    let world = World::with(ExposedAgents::AllOnLoopback, &["127.0.0.1:9"]).await;
    let id = world.stalling("m1").await["id"].clone();
    let config =
        json!({ "taskId": id, "id": "mine", "url": "http://127.0.0.1:9/hook", "token": "t" });
    let created = world.rpc("CreateTaskPushNotificationConfig", config.clone()).await;
    assert_eq!(created["result"], config, "{created}");
    let one = json!({ "taskId": id, "id": "mine" });
    let got = world.rpc("GetTaskPushNotificationConfig", one.clone()).await;
    assert_eq!(got["result"], config);
    let path = format!("/a2a/helper/tasks/{}/pushNotificationConfigs", id.as_str().unwrap());
    let more = json!({ "url": "http://127.0.0.1:9/other" });
    let more = world.http("POST", &path, Some(&more)).await.json();
    assert!(more["id"].is_string(), "{more}");
    let listed = world.http("GET", &path, None).await.json();
    assert_eq!(listed["configs"].as_array().unwrap().len(), 2, "{listed}");
    let stored = antiphon_a2a_api::A2a::new(antiphon_a2a_api::A2aConfig::new(world.folder.path()));
    assert!(stored.is_ok(), "another process reads them");
    for _ in 0..2 {
        let deleted = world.rpc("DeleteTaskPushNotificationConfig", one.clone()).await;
        assert!(deleted["result"].is_object(), "{deleted}");
    }
    let got = world.rpc("GetTaskPushNotificationConfig", one).await;
    assert_eq!(error(&got).0, -32001);
    let none = json!({ "taskId": "none", "url": "http://127.0.0.1:9/" });
    let none = world.rpc("CreateTaskPushNotificationConfig", none).await;
    assert_eq!(error(&none).0, -32001);
    world.ended().await;
}

#[tokio::test]
async fn addresses_that_are_not_public_are_refused() {
    let world = World::new().await;
    let id = world.stalling("m1").await["id"].clone();
    for url in [
        "http://127.0.0.1/",
        "https://127.0.0.1/",
        "https://localhost/",
        "https://10.0.0.1/",
        "https://[::1]/",
        "https://169.254.169.254/latest/meta-data",
        "https://0x7f.1/",
        "https://[::ffff:10.0.0.1]/",
        "ftp://1.1.1.1/",
        "file:///etc/passwd",
        "https://user:pass@1.1.1.1/",
        "nonsense",
        "",
    ] {
        let config = json!({ "taskId": id, "url": url });
        let reply = world.rpc("CreateTaskPushNotificationConfig", config).await;
        assert_eq!(error(&reply).0, -32602, "{url}: {reply}");
        let mut params = message("m2", "hello");
        params["configuration"] = json!({ "taskPushNotificationConfig": { "url": url } });
        assert_eq!(error(&world.rpc("SendMessage", params).await).0, -32602, "{url}");
    }
    world.ended().await;
}

/// The file of a configuration, as the server stores it.
fn stored(payer: Option<&str>, number: usize, over_at: &str) -> Value {
    let config =
        json!({ "taskId": format!("task-{number}"), "id": "mine", "url": "http://127.0.0.1:9/" });
    json!({
        "config": config, "delivered": 3, "done": true, "payer": payer, "over_at": over_at,
    })
}

fn files(folder: &std::path::Path) -> usize {
    std::fs::read_dir(folder.join("a2a-push")).unwrap().count()
}

fn folder_with(configs: impl Iterator<Item = Value>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    antiphon_private_file::create_folder(&folder.path().join("a2a-push")).unwrap();
    for (number, config) in configs.enumerate() {
        let path = folder.path().join(format!("a2a-push/{number}.json"));
        let bytes = config.to_string();
        let durability = antiphon_private_file::Durability::Buffered;
        antiphon_private_file::write_atomic(&path, bytes.as_bytes(), durability).unwrap();
    }
    folder
}

#[tokio::test]
async fn a_configuration_is_dropped_a_day_after_the_end_of_its_task_was_delivered() {
    let now = chrono::Utc::now();
    let ages = [chrono::TimeDelta::hours(23), chrono::TimeDelta::hours(25)];
    let at = ages.map(|age| (now - age).to_rfc3339());
    let configs = at.iter().enumerate().map(|(number, at)| stored(None, number, at));
    let folder = folder_with(configs);
    let world = World::in_folder(folder, ExposedAgents::AllOnLoopback, &["127.0.0.1:9"]).await;
    assert_eq!(files(world.folder.path()), 1);
    world.ended().await;
}

#[tokio::test]
async fn a_key_with_too_many_configurations_does_not_block_another_one() {
    let at = chrono::Utc::now().to_rfc3339();
    // The owner has as many as one caller may have.
    let folder = folder_with((0..1000).map(|number| stored(None, number, &at)));
    let world = World::in_folder(folder, ExposedAgents::AllOnLoopback, &["127.0.0.1:9"]).await;
    let create = |id: &Value| json!({ "taskId": id, "url": "http://127.0.0.1:9/" });
    let own = world.stalling("m1").await;
    let refused = world.rpc("CreateTaskPushNotificationConfig", create(&own["id"])).await;
    assert_eq!(error(&refused).0, -32004, "{refused}");
    let [ada, _] = world.keys.clone();
    let mut params = message("m2", "stall");
    params["configuration"] = json!({ "returnImmediately": true });
    let task = world.rpc_as(&ada, "SendMessage", params).await["result"]["task"].clone();
    let created = world.rpc_as(&ada, "CreateTaskPushNotificationConfig", create(&task["id"])).await;
    assert!(created["result"]["id"].is_string(), "{created}");
    world.ended().await;
}

/// The keys of a world, as another process changes them.
fn ring(world: &World) -> KeyRing {
    KeyRing::open(world.folder.path().join("keys.json")).unwrap()
}

/// Revokes the key of this text.
fn revoke(ring: &KeyRing, key: &str) {
    ring.revoke(key.split('_').nth(1).unwrap().parse().unwrap()).unwrap();
}

#[tokio::test]
async fn updates_for_a_key_that_was_revoked_end_and_its_configuration_is_dropped() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let world = World::with(ExposedAgents::AllOnLoopback, &[&host]).await;
    let [ada, _] = world.keys.clone();
    let mut params = message("m1", "stall");
    params["configuration"] = json!({ "returnImmediately": true, "taskPushNotificationConfig": {
        "url": format!("http://{host}/hook"),
    }});
    world.rpc_as(&ada, "SendMessage", params).await;
    // It was not received, and is sent again half a second later.
    receive(&listener, "500 Not now").await;
    revoke(&ring(&world), &ada);
    let dropped = async {
        while files(world.folder.path()) > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(15), dropped).await.unwrap();
    let more = tokio::time::timeout(std::time::Duration::ZERO, listener.accept()).await;
    assert!(more.is_err(), "it was sent once");
    world.ended().await;
}

#[tokio::test]
async fn a_server_that_starts_drops_the_configurations_of_keys_that_are_not_valid() {
    let world = World::with(ExposedAgents::AllOnLoopback, &["127.0.0.1:9"]).await;
    let [ada, _] = world.keys.clone();
    let mut params = message("m1", "stall");
    params["configuration"] = json!({ "returnImmediately": true });
    let task = world.rpc_as(&ada, "SendMessage", params).await["result"]["task"].clone();
    let config = |id: &str| json!({ "taskId": task["id"], "id": id, "url": "http://127.0.0.1:9/" });
    world.rpc("CreateTaskPushNotificationConfig", config("owners")).await;
    world.rpc_as(&ada, "CreateTaskPushNotificationConfig", config("adas")).await;
    assert_eq!(files(world.folder.path()), 2);
    let keys = ring(&world);
    revoke(&keys, &ada);
    // As after a restart. Deliveries do not go on meanwhile: the test does not wait.
    world.a2a.resume_push(&world.orchestrator, Some(Arc::new(keys)));
    assert_eq!(files(world.folder.path()), 1);
    let listed =
        world.rpc("ListTaskPushNotificationConfigs", json!({ "taskId": task["id"] })).await;
    assert_eq!(listed["result"]["configs"], json!([config("owners")]), "the owner's is kept");
    world.ended().await;
}

#[tokio::test]
async fn only_the_caller_that_set_a_configuration_sees_its_secrets_and_changes_it() {
    let world = World::with(ExposedAgents::AllOnLoopback, &["127.0.0.1:9"]).await;
    let [ada, _] = world.keys.clone();
    let mut params = message("m1", "stall");
    params["configuration"] = json!({ "returnImmediately": true });
    let task = world.rpc_as(&ada, "SendMessage", params).await["result"]["task"].clone();
    let config = |id: &str| {
        json!({
            "taskId": task["id"], "id": id, "url": "http://127.0.0.1:9/hook", "token": "TOKEN",
            "authentication": { "scheme": "Bearer", "credentials": "SECRET" },
        })
    };
    let one = |id: &str| json!({ "taskId": task["id"], "id": id });
    world.rpc_as(&ada, "CreateTaskPushNotificationConfig", config("adas")).await;
    world.rpc("CreateTaskPushNotificationConfig", config("owners")).await;
    let own = world.rpc_as(&ada, "GetTaskPushNotificationConfig", one("adas")).await;
    assert_eq!(own["result"], config("adas"), "{own}");
    let hidden = world.rpc_as(&ada, "GetTaskPushNotificationConfig", one("owners")).await;
    assert_eq!(error(&hidden).0, -32001, "{hidden}");
    let of_task = json!({ "taskId": task["id"] });
    let listed = world.rpc_as(&ada, "ListTaskPushNotificationConfigs", of_task.clone()).await;
    assert_eq!(listed["result"]["configs"], json!([config("adas")]));
    let listed = world.rpc("ListTaskPushNotificationConfigs", of_task).await;
    let mut shown = config("adas");
    shown.as_object_mut().unwrap().remove("token");
    shown["authentication"] = json!({ "scheme": "Bearer" });
    assert_eq!(listed["result"]["configs"], json!([shown, config("owners")]));
    let replaced = world.rpc("CreateTaskPushNotificationConfig", config("adas")).await;
    assert_eq!(error(&replaced).0, -32004, "{replaced}");
    let deleted = world.rpc("DeleteTaskPushNotificationConfig", one("adas")).await;
    assert_eq!(error(&deleted).0, -32004, "{deleted}");
    world.rpc_as(&ada, "DeleteTaskPushNotificationConfig", one("owners")).await;
    assert_eq!(files(world.folder.path()), 2, "neither was deleted");
    world.ended().await;
}
