//! The actions of requests and their responses.

use std::fs;

use antiphon_core::{
    AgentName, Command, HandlingMode, InteractionContent, InteractionId, Order, ResponseStatus,
    Salience, TaskId, Wait, Wake,
};
use antiphon_file_drop::WhenAbsent;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::world::{World, comparable, response_at, until};

/// The orders of a request, and its response.
async fn execute(request: Value) -> (Vec<Order>, Value) {
    let world = World::new();
    world.drop("a.json", &request.to_string());
    world.pass().await;
    let orders = world.orders.effects().into_iter().map(|(requester, order)| {
        assert_eq!(requester, "boss");
        order
    });
    (orders.collect(), world.comparable("a").await)
}

/// The error message of an invalid request. No order was executed.
async fn reject(request: Value) -> String {
    let (orders, answer) = execute(request).await;
    assert_eq!(orders, []);
    assert_eq!(answer["ok"], false);
    assert_eq!(answer["error"]["code"], "INVALID_REQUEST");
    assert_eq!(answer["setAside"], "rejected/a.json");
    answer["error"]["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_agent_is_spawned_stopped_and_given_a_new_context() {
    let spawn = json!({"action": "spawn_agent", "name": " dev-backend ", "profile": "claude-code", "context": "# Be brief."});
    let command = Command::SpawnAgent {
        name: "dev-backend".to_owned(),
        profile: "claude-code".to_owned(),
        context: Some("# Be brief.".to_owned()),
    };
    let answer = json!({"request": "a.json", "ok": true, "status": "started", "agent": "dev-backend", "taskId": "task-0"});
    assert_eq!(execute(spawn).await, (vec![Order::Control(command)], answer));

    let command = Command::StopAgent { name: "dev-backend".to_owned() };
    let answer =
        json!({"request": "a.json", "ok": true, "status": "stopped", "agent": "dev-backend"});
    let stop = json!({"action": "stop_agent", "name": "dev-backend", "more": [1, 2]});
    assert_eq!(execute(stop).await, (vec![Order::Control(command)], answer));

    let update = json!({"action": "update_agent_context", "name": "a", "context": "# new body"});
    let command = Command::UpdateAgentContext { name: "a".into(), context: "# new body".into() };
    let answer = json!({"request": "a.json", "ok": true, "status": "updated", "agent": "a"});
    assert_eq!(execute(update).await, (vec![Order::Control(command)], answer));
}

#[tokio::test]
async fn a_message_or_a_request_is_sent_to_an_agent() {
    let to = AgentName::parse("reviewer").unwrap();
    let id = "00000000-0000-0000-0000-000000000007";
    let answer = json!({"request": "a.json", "ok": true, "status": "accepted", "agent": "reviewer", "interactionId": id});
    let message = Order::Send {
        to: to.clone(),
        content: InteractionContent::Message { body: "hello".to_owned(), blocks: None },
        mode: HandlingMode::Queue,
        salience: None,
        wake: Wake::Yes,
    };
    let send = json!({"action": "send", "name": "reviewer", "message": "hello"});
    assert_eq!(execute(send).await, (vec![message], answer.clone()));

    let image = json!([{"type": "image", "media_type": "image/png", "data": "iVBORw0KGgo="}]);
    let send = json!({"action": "send", "name": "reviewer", "blocks": image});
    let (orders, _) = execute(send).await;
    let is_image = matches!(&*orders,
        [Order::Send { content: InteractionContent::Message { body, blocks: Some(blocks) }, .. }]
            if body.is_empty() && blocks.len() == 1);
    assert!(is_image, "{orders:?}");

    let params = json!({"file": "a.rs"});
    let request = Order::Send {
        to,
        content: InteractionContent::Request { intent: "review".into(), params: params.clone() },
        mode: HandlingMode::Steer,
        salience: Some(Salience::Urgent),
        wake: Wake::No,
    };
    let send = json!({"action": "send", "name": "reviewer", "intent": "review", "params": params, "mode": "steer", "salience": "urgent", "wake": false});
    assert_eq!(execute(send).await, (vec![request], answer));
}

#[tokio::test]
async fn a_task_is_invoked_and_waited_for_or_not_and_canceled() {
    let order = |agent: Option<&str>, model: Option<&str>, wait| Order::Invoke {
        agent: agent.map(str::to_owned),
        prompt: "do it".to_owned(),
        model: model.map(str::to_owned),
        wait,
    };
    let answer = json!({"request": "a.json", "ok": true, "status": "accepted", "taskId": "task-0"});
    let invoke = json!({"action": "invoke", "prompt": "do it"});
    assert_eq!(execute(invoke).await, (vec![order(None, None, Wait::No)], answer));

    let invoke = json!({"action": "invoke", "prompt": "do it", "name": "dev", "model": "scripted/hello", "wait": true});
    let answer = json!({"request": "a.json", "ok": true, "status": "completed", "agent": "dev", "taskId": "task-0", "result": {"echo": "do it"}});
    let order = order(Some("dev"), Some("scripted/hello"), Wait::ForResult);
    assert_eq!(execute(invoke).await, (vec![order], answer));

    let cancel = json!({"action": "cancel", "taskId": "task-9"});
    let answer = json!({"request": "a.json", "ok": true, "status": "canceled", "taskId": "task-9"});
    let order = Order::Cancel { task_id: TaskId::parse("task-9").unwrap() };
    assert_eq!(execute(cancel).await, (vec![order], answer));
}

#[tokio::test]
async fn an_invalid_request_is_refused_with_the_documented_message() {
    let cases = [
        (
            json!({"action": "delete_everything", "name": "a"}),
            "unknown orchestrator action: delete_everything",
        ),
        (json!({"name": "a"}), "unknown orchestrator action: "),
        (json!({"action": 5, "name": "a"}), "unknown orchestrator action: 5"),
        (
            json!({"action": "delete_everything", "name": 5}),
            "unknown orchestrator action: delete_everything",
        ),
        (
            json!({"action": "send", "name": "a", "blocks": []}),
            "missing required field `message` for action `send`",
        ),
        (
            json!({"action": "spawn_agent", "name": "a"}),
            "missing required field `profile` for action `spawn_agent`",
        ),
        (
            json!({"action": "stop_agent", "name": " "}),
            "missing required field `name` for action `stop_agent`",
        ),
        (
            json!({"action": "update_agent_context", "name": "a"}),
            "missing required field `context` for action `update_agent_context`",
        ),
        (
            json!({"action": "send", "name": "a"}),
            "missing required field `message` for action `send`",
        ),
        (
            json!({"action": "send", "message": "a"}),
            "missing required field `name` for action `send`",
        ),
        (
            json!({"action": "send", "name": "a", "message": "b", "intent": "c"}),
            "`send` has a `message` or an `intent`, not both",
        ),
        (
            json!({"action": "invoke", "prompt": "\n"}),
            "missing required field `prompt` for action `invoke`",
        ),
        (json!({"action": "cancel"}), "missing required field `taskId` for action `cancel`"),
        (
            json!({"action": "stop_agent", "name": "../a"}),
            "`name` names no agent: a name may hold letters, digits, spaces and `_ - .`, not '/'",
        ),
        (
            json!({"action": "cancel", "taskId": "a b"}),
            "`taskId` names no task: an identifier must not contain white space or control characters",
        ),
        (
            json!({"action": "invoke", "prompt": "a", "model": "gpt"}),
            "`gpt` names no model: write PROVIDER/MODEL, for instance `scripted/hello`",
        ),
        (json!({"action": "stop_agent", "name": "a", "id": 5}), "`id` must be a string"),
        (
            json!({"action": "stop_agent", "name": "a", "id": ""}),
            "`id` is wrong: an identifier must not be empty",
        ),
        (
            json!({"action": "stop_agent", "name": "a", "id": "x".repeat(129)}),
            "`id` may have 128 bytes at most, this one has 129",
        ),
    ];
    for (request, message) in cases {
        assert_eq!(reject(request).await, message);
    }
}

#[tokio::test]
async fn a_value_of_the_wrong_type_is_refused_with_the_name_of_its_field() {
    let mode = json!({"action": "send", "name": "a", "message": "b", "mode": "soon"});
    let message = reject(mode).await;
    assert!(
        message.starts_with("`mode`: unknown variant `soon`, expected `queue` or `steer`"),
        "{message}"
    );
    let name = reject(json!({"action": "stop_agent", "name": 5})).await;
    assert!(name.starts_with("`name`: invalid type: integer `5`"), "{name}");
}

#[tokio::test]
async fn a_refused_order_is_answered_with_an_error_and_the_file_stays() {
    let world = World::watched().await;
    world.drop("a.json", r#"{"action":"stop_agent","name":"nobody","id":"7"}"#);
    let error = json!({"code": "NOT_FOUND", "message": "there is no agent `nobody`: see `antiphon agents list`"});
    let answer = json!({"request": "a.json", "id": "7", "ok": false, "error": error});
    assert_eq!(world.comparable("a").await, answer);
    assert_eq!(world.names(), ["a.json", "a.response.json"]);
}

#[tokio::test]
async fn a_response_identifies_its_request_and_has_a_time() {
    let world = World::watched().await;
    let before = Utc::now();
    world.drop("a.json", "\u{feff} {\"action\":\"stop_agent\",\"name\":\"dev-backend\"}\r\n");
    let response = world.response("a").await;
    // Of the trimmed text, as `sha256sum` computes it.
    let digest = "sha256:21617658f527923386033cd4ac0661aa0fbfa3cc67bd7e6154759ce0eb2c12d4";
    assert_eq!(response.digest.as_deref(), Some(digest));
    let text = fs::read_to_string(world.path("a.response.json")).unwrap();
    let answer: Value = serde_json::from_str(&text).unwrap();
    let time = answer["time"].as_str().unwrap();
    assert!(time.ends_with('Z'), "{time}");
    let time: DateTime<Utc> = time.parse().unwrap();
    assert!(time.timestamp_millis() >= before.timestamp_millis() && time <= Utc::now(), "{time}");
}

#[tokio::test]
async fn a_request_is_answered_with_a_text_or_a_value() {
    let id = "0194f5b6-7c1e-7000-8000-000000000001";
    let request_id = InteractionId(Uuid::parse_str(id).unwrap());
    for (fields, status, result) in [
        (json!({"message": "done"}), ResponseStatus::Completed, json!("done")),
        (json!({"result": null}), ResponseStatus::Completed, Value::Null),
        (json!({"result": {"n": 1}, "status": "failed"}), ResponseStatus::Failed, json!({"n": 1})),
        (json!({"status": "accepted"}), ResponseStatus::Accepted, Value::Null),
    ] {
        let world = World::new();
        let mut request = fields;
        request["action"] = json!("respond");
        request["requestId"] = json!(id);
        world.drop("a.json", &request.to_string());
        world.pass().await;
        let answer = json!({"request": "a.json", "ok": true, "status": "answered"});
        assert_eq!(world.comparable("a").await, answer, "{request}");
        let order = Order::Respond { request_id, status, result };
        assert_eq!(world.orders.effects(), [("boss".to_owned(), order)]);
    }
    for (fields, reason) in [
        (json!({}), "`message`"),
        (json!({"message": "a", "result": 1}), "not both"),
        (json!({"message": "a", "status": "done"}), "`done`"),
        (json!({"message": "a", "requestId": "7"}), "`requestId`"),
        (json!({"message": "a", "requestId": " "}), "`requestId`"),
    ] {
        let world = World::new();
        let mut request = json!({"action": "respond", "requestId": id});
        request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        world.drop("a.json", &request.to_string());
        world.pass().await;
        let answer = world.comparable("a").await;
        assert_eq!(answer["ok"], false, "{request}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(reason), "{answer}");
    }
}

#[tokio::test]
async fn a_result_that_is_too_large_is_omitted_and_flagged() {
    let mut world = World::new();
    world.settings.request_bytes_max *= 2;
    let prompt = "x".repeat(antiphon_file_drop::RESULT_BYTES_MAX);
    let invoke = json!({"action": "invoke", "prompt": prompt, "wait": true});
    world.drop("a.json", &invoke.to_string());
    world.pass().await;
    let answer = json!({"request": "a.json", "ok": true, "status": "completed", "taskId": "task-0", "resultOmitted": true});
    assert_eq!(world.comparable("a").await, answer);
}

#[tokio::test]
async fn both_folders_are_watched_also_one_that_is_created_later() {
    let mut world = World::new();
    world.settings.rescan_every = std::time::Duration::from_millis(50);
    world.settings.folders[1].absent = WhenAbsent::Wait;
    world.start().await;
    let other = world.project().join(".ideai/requests/dev lead");
    assert!(!world.project().join(".ideai").exists());
    fs::create_dir_all(&other).unwrap();
    fs::write(other.join("a.json"), r#"{"action":"stop_agent","name":"x"}"#).unwrap();
    let answer = comparable(response_at(&other.join("a.response.json")).await);
    assert_eq!(answer, json!({"request": "a.json", "ok": true, "status": "stopped", "agent": "x"}));
    let order = Order::Control(Command::StopAgent { name: "x".to_owned() });
    until(|| (world.orders.effects() == [("dev lead".to_owned(), order.clone())]).then_some(()))
        .await;
}
