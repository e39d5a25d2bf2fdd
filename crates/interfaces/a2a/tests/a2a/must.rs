//! The requirements (MUST) of the specification v1.0.1 on servers of JSON-RPC and HTTP+JSON. Requirements on clients,
//! on gRPC, on custom bindings and on documents are left out.
//!
//! | section | requirement                                                        | test |
//! |---------|--------------------------------------------------------------------|------|
//! | 3.1.1   | a message returns a task or a message                              | `a_message_returns_its_task` |
//! | 3.1.2   | a stream begins with the task, and closes at its end               | `a_stream_begins_with_the_task_and_closes_at_its_end` |
//! | 3.1.4   | artifacts are omitted unless asked for; `nextPageToken` is present; newest first; cursors | `a_list_is_paged_newest_first` |
//! | 3.1.6   | a subscription begins with the task, and ends with it; not for ended tasks | `a_subscription_begins_with_the_task` |
//! | 3.1.7–10 | configurations are stored, returned, listed, deleted idempotently | `push.rs` |
//! | 3.1.11, 13.3 | the extended card needs credentials                           | `cards.rs` |
//! | 3.2.2   | blocking waits for the end or an interruption; else returns at once | `a_message_returns_its_task`, `an_approval_interrupts` |
//! | 3.2.4   | `historyLength`                                                    | `a_history_has_the_length_that_is_asked_for` |
//! | 3.3.2   | an error says which kind it is, and an internal one nothing of the server | `errors_have_their_codes_in_both_bindings`, `keys.rs` |
//! | 3.3.4   | an operation of a capability that the card does not have is refused; each one that it has works | `capabilities_of_the_card_are_kept` |
//! | 4.3.3, 13.2 | notifications carry the token and the credentials; their address is checked | `push.rs` |
//! | 5.1     | both bindings have the same operations, with the same results and errors | `every_operation_is_the_same_in_both_bindings` |
//! | 13.1    | a caller sees only what it may; what it may not is not found       | `keys.rs` |
//! | 3.3.2, 5.4, 9.5, 11.6 | errors with code, message and `ErrorInfo`           | `errors_have_their_codes_in_both_bindings` |
//! | 3.4.1   | a new `contextId` is in the response; one that cannot be accepted is refused | `contexts_group_tasks` |
//! | 3.4.2   | ids of tasks are unique and the server's; an unknown one is not found | `errors_have_their_codes_in_both_bindings`, `a_message_is_accepted_once` |
//! | 3.4.3   | the context follows from the task; a mismatch is refused           | `contexts_group_tasks` |
//! | 3.5.2   | all streams get the same events in order; closing one ends no other | `all_streams_of_a_task_see_the_same` |
//! | 3.6     | version: patch ignored, empty is 0.3, unsupported is an error      | `versions_are_negotiated` |
//! | 5.5–5.7 | camelCase, enums by name, UTC timestamps, required fields          | `a_message_returns_its_task`, `invalid_parameters_are_refused` |
//! | 7.3, 7.4 | every request is authenticated as the card declares               | `attacks.rs`, `cards.rs` |
//! | 8.2, 8.3, 14.3 | a card is available and declares its interfaces             | `cards.rs` |
//! | 8.4     | a card is signed over its canonical form (RFC 8785, RFC 7515), without its signatures | `cards.rs` |
//! | 9.3     | JSON-RPC 2.0                                                       | `attacks.rs` |
//! | 11.3, 11.5 | paths and queries of HTTP+JSON, in camelCase                    | `both_bindings_do_the_same`, `queries_are_read_like_parameters` |

use antiphon_a2a_api::ExposedAgents;
use serde_json::{Value, json};

use crate::world::{World, error, message, request};

#[tokio::test]
async fn a_message_returns_its_task() {
    let world = World::new().await;
    let task = world.task("m1", "hello").await;
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
    assert!(task["status"]["timestamp"].as_str().unwrap().ends_with('Z'), "{task}");
    assert_eq!(task["artifacts"][0]["artifactId"], "result");
    assert_eq!(task["artifacts"][0]["parts"], json!([{ "text": "You said hello" }]));
    let roles: Vec<&Value> =
        task["history"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["ROLE_USER", "ROLE_AGENT"]);
    let stalling = world.stalling("m2").await;
    let state = stalling["status"]["state"].as_str().unwrap();
    assert!(["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"].contains(&state), "{stalling}");
    let failed = world.task("m3", "break").await;
    assert_eq!(failed["status"]["state"], "TASK_STATE_FAILED", "{failed}");
    assert!(failed["status"]["message"]["parts"][0]["text"].as_str().unwrap().contains("it broke"));
    world.ended().await;
}

#[tokio::test]
async fn a_message_is_accepted_once() {
    let world = World::new().await;
    let (one, same) = (world.task("m1", "hello").await, world.task("m1", "hello").await);
    assert_eq!(one["id"], same["id"]);
    let other = world.task("m2", "hello").await;
    assert_ne!(one["id"], other["id"]);
    world.ended().await;
}

#[tokio::test]
async fn a_stream_begins_with_the_task_and_closes_at_its_end() {
    let world = World::new().await;
    let events = world.stream("SendStreamingMessage", message("m1", "slow")).await;
    assert!(events[0]["task"]["id"].is_string(), "{events:?}");
    let last = events.last().unwrap();
    assert_eq!(last["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED", "{events:?}");
    let mut text = String::new();
    for update in events.iter().map(|event| &event["artifactUpdate"]).filter(|it| it.is_object()) {
        assert_eq!(update["artifact"]["artifactId"], "result");
        if update["append"] != json!(true) {
            text.clear();
        }
        text.push_str(update["artifact"]["parts"][0]["text"].as_str().unwrap());
    }
    assert_eq!(text, "At last.", "{events:?}");
    world.ended().await;
}

#[tokio::test]
async fn a_subscription_begins_with_the_task() {
    let world = World::new().await;
    let task = world.stalling("m1").await;
    let subscribed = world.begun_stream("SubscribeToTask", json!({ "id": task["id"] })).await;
    let canceled = world.rpc("CancelTask", json!({ "id": task["id"] })).await;
    let events = subscribed.results().await;
    assert_eq!(canceled["result"]["status"]["state"], "TASK_STATE_CANCELED", "{canceled}");
    assert_eq!(events[0]["task"]["id"], task["id"]);
    assert_eq!(
        events.last().unwrap()["statusUpdate"]["status"]["state"],
        "TASK_STATE_CANCELED",
        "{events:?}"
    );
    let again = world.rpc("SubscribeToTask", json!({ "id": task["id"] })).await;
    assert_eq!(error(&again), (-32004, "UNSUPPORTED_OPERATION".to_owned()));
    world.ended().await;
}

#[tokio::test]
async fn a_stream_of_a_task_that_waits_for_a_person_already_ends_with_the_task() {
    let world = World::new().await;
    let task = world.task("m1", "act").await;
    let events = world.stream("SendStreamingMessage", message("m1", "act")).await;
    assert_eq!(events, [json!({ "task": task })]);
    world.ended().await;
}

#[tokio::test]
async fn all_streams_of_a_task_see_the_same() {
    let world = World::new().await;
    let task = world.stalling("m1").await;
    let params = json!({ "id": task["id"] });
    let one = world.begun_stream("SubscribeToTask", params.clone()).await;
    let two = world.begun_stream("SubscribeToTask", params.clone()).await;
    world.rpc("CancelTask", params).await;
    let (one, two) = (one.results().await, two.results().await);
    assert!(two.len() > 1, "{two:?}");
    assert!(one.ends_with(&two[1..]), "{one:?} {two:?}");
    world.ended().await;
}

#[tokio::test]
async fn an_approval_interrupts_and_is_decided_by_a_message() {
    let world = World::new().await;
    let task = world.task("m1", "act").await;
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{task}");
    let approval = &task["status"]["message"]["parts"][1]["data"]["approval"];
    assert_eq!(approval["toolName"], "act", "{task}");
    let mut params = message("m2", "please");
    params["message"]["taskId"] = task["id"].clone();
    let still = world.rpc("SendMessage", params).await;
    assert_eq!(still["result"]["task"]["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{still}");
    let decision = json!({ "approval": { "id": approval["id"], "decision": "deny" } });
    let mut params = message("m3", "");
    params["message"]["taskId"] = task["id"].clone();
    params["message"]["parts"] = json!([{ "data": decision }]);
    let done = world.rpc("SendMessage", params).await;
    assert_eq!(done["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{done}");
    world.ended().await;
}

#[tokio::test]
async fn a_question_is_answered_with_a_message_that_is_one_of_its_choices() {
    let world = World::new().await;
    let task = world.task("m1", "which color").await;
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{task}");
    let parts = &task["status"]["message"]["parts"];
    assert_eq!(parts[0]["text"], "Which color?", "{task}");
    let approval = &parts[1]["data"]["approval"];
    assert_eq!(approval["question"]["choices"], json!([{"label": "Red"}, {"label": "Blue"}]));
    assert_eq!(approval["decisions"], json!(["allow_once", "deny"]));
    let mut params = message("m2", "neither");
    params["message"]["taskId"] = task["id"].clone();
    let still = world.rpc("SendMessage", params).await;
    assert_eq!(still["result"]["task"]["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{still}");
    let mut params = message("m3", "blue");
    params["message"]["taskId"] = task["id"].clone();
    let done = world.rpc("SendMessage", params.clone()).await;
    assert_eq!(done["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{done}");
    // A client that did not get the response sends the answer again: it is no new message.
    let again = world.rpc("SendMessage", params.clone()).await;
    assert_eq!(again["result"]["task"]["id"], task["id"], "{again}");
    params["message"]["messageId"] = json!("m4");
    let new = world.rpc("SendMessage", params).await;
    assert_eq!(new["error"]["code"], -32004, "the task has ended: {new}");
    world.ended().await;
}

#[tokio::test]
async fn a_history_has_the_length_that_is_asked_for() {
    let world = World::new().await;
    let id = world.task("m1", "hello").await["id"].clone();
    for (length, count) in [(None, 2), (Some(0), 0), (Some(1), 1), (Some(9), 2)] {
        let task = world.rpc("GetTask", json!({ "id": id, "historyLength": length })).await;
        let found = task["result"]["history"].as_array().map_or(0, Vec::len);
        assert_eq!(found, count, "{length:?}: {task}");
    }
    let none = world.rpc("GetTask", json!({ "id": id, "historyLength": 0 })).await;
    assert!(none["result"].get("history").is_none(), "{none}");
    let wrong = world.rpc("GetTask", json!({ "id": id, "historyLength": -1 })).await;
    assert_eq!(error(&wrong).0, -32602);
    world.ended().await;
}

#[tokio::test]
async fn a_list_is_paged_newest_first() {
    let world = World::new().await;
    let mut ids = Vec::new();
    for number in 0..5 {
        ids.push(world.task(&format!("m{number}"), "hello").await["id"].clone());
    }
    ids.reverse();
    let (mut listed, mut token) = (Vec::new(), json!(""));
    loop {
        let params = json!({ "pageSize": 2, "pageToken": token });
        let page = world.rpc("ListTasks", params).await["result"].clone();
        assert_eq!((&page["totalSize"], &page["pageSize"]), (&json!(5), &json!(2)), "{page}");
        let tasks = page["tasks"].as_array().unwrap();
        assert!(tasks.iter().all(|task| task.get("artifacts").is_none()), "{page}");
        listed.extend(tasks.iter().map(|task| task["id"].clone()));
        token = page["nextPageToken"].clone();
        if token == "" {
            break;
        }
    }
    assert_eq!(listed, ids);
    let with = world.rpc("ListTasks", json!({ "includeArtifacts": true })).await;
    assert_eq!(with["result"]["tasks"][0]["artifacts"][0]["artifactId"], "result");
    let none = world.rpc("ListTasks", json!({ "status": "TASK_STATE_FAILED" })).await;
    assert_eq!(none["result"]["tasks"], json!([]));
    for params in [
        json!({ "pageSize": 0 }),
        json!({ "pageSize": 101 }),
        json!({ "pageToken": "x" }),
        json!({ "status": "DONE" }),
    ] {
        assert_eq!(error(&world.rpc("ListTasks", params.clone()).await).0, -32602, "{params}");
    }
    world.ended().await;
}

#[tokio::test]
async fn contexts_group_tasks() {
    let world = World::new().await;
    let first = world.task("m1", "hello").await;
    assert!(first["contextId"].is_string());
    let mut params = message("m2", "again");
    params["message"]["contextId"] = first["contextId"].clone();
    let second = world.rpc("SendMessage", params).await["result"]["task"].clone();
    assert_eq!(second["contextId"], first["contextId"], "{second}");
    assert_ne!(second["id"], first["id"]);
    let mut params = message("m3", "hello");
    params["message"]["contextId"] = json!("made-up");
    assert_eq!(error(&world.rpc("SendMessage", params).await).0, -32602);
    let stalling = world.stalling("m4").await;
    let mut params = message("m5", "more");
    params["message"]["taskId"] = stalling["id"].clone();
    params["message"]["contextId"] = first["contextId"].clone();
    assert_eq!(error(&world.rpc("SendMessage", params.clone()).await).0, -32602);
    params["message"]["contextId"] = json!("");
    params["configuration"] = json!({ "returnImmediately": true });
    let said = world.rpc("SendMessage", params).await["result"]["task"].clone();
    assert_eq!(said["contextId"], stalling["contextId"], "{said}");
    world.ended().await;
}

/// A request in both bindings, and its error.
struct Wrong {
    method: &'static str,
    params: Value,
    code: i64,
    reason: &'static str,
    verb: &'static str,
    path: String,
    status: u16,
}

async fn check_error(world: &World, wrong: Wrong) {
    let Wrong { method, params, code, reason, verb, path, status } = wrong;
    let reply = world.rpc(method, params.clone()).await;
    assert_eq!(error(&reply), (code, reason.to_owned()), "{method} {params}");
    assert_eq!(reply["error"]["data"][0]["domain"], "a2a-protocol.org");
    let body = (verb == "POST").then_some(&params);
    let reply = world.http(verb, &format!("/a2a/helper{path}"), body).await;
    assert_eq!(reply.status, status, "{method}: {reply:?}");
    assert!(reply.head.contains("content-type: application/a2a+json"), "{reply:?}");
    let reply = reply.json();
    assert_eq!(reply["error"]["code"], status, "{reply}");
    assert_eq!(reply["error"]["details"][0]["reason"], reason, "{reply}");
    assert_eq!(reply["error"]["details"][0]["domain"], "a2a-protocol.org");
}

#[tokio::test]
async fn errors_have_their_codes_in_both_bindings() {
    let world = World::new().await;
    let ended = world.task("m1", "hello").await["id"].clone();
    let id = ended.as_str().unwrap();
    for (method, task, code, reason, verb, path, status) in [
        ("GetTask", "none", -32001, "TASK_NOT_FOUND", "GET", "", 404),
        ("CancelTask", "none", -32001, "TASK_NOT_FOUND", "POST", ":cancel", 404),
        ("CancelTask", id, -32002, "TASK_NOT_CANCELABLE", "POST", ":cancel", 400),
        ("SubscribeToTask", id, -32004, "UNSUPPORTED_OPERATION", "GET", ":subscribe", 400),
    ] {
        let (params, path) = (json!({ "id": task }), format!("/tasks/{task}{path}"));
        check_error(&world, Wrong { method, params, code, reason, verb, path, status }).await;
    }
    let mut more = message("m2", "more");
    more["message"]["taskId"] = ended.clone();
    let mut unknown = message("m3", "more");
    unknown["message"]["taskId"] = json!("no-such-task");
    let mut kind = message("m4", "");
    kind["message"]["parts"] = json!([{ "raw": "AAAA", "mediaType": "application/x-tar" }]);
    for (params, code, reason, status) in [
        (more, -32004, "UNSUPPORTED_OPERATION", 400),
        (unknown, -32001, "TASK_NOT_FOUND", 404),
        (kind, -32005, "CONTENT_TYPE_NOT_SUPPORTED", 400),
    ] {
        let (method, verb, path) = ("SendMessage", "POST", "/message:send".to_owned());
        check_error(&world, Wrong { method, params, code, reason, verb, path, status }).await;
    }
    world.ended().await;
}

#[tokio::test]
async fn invalid_parameters_are_refused() {
    let world = World::new().await;
    let of = |change: fn(&mut Value)| {
        let mut params = message("m1", "hello");
        change(&mut params);
        params
    };
    let cases = [
        json!({}),
        json!({ "message": "hello" }),
        of(|params| drop(params["message"].as_object_mut().unwrap().remove("messageId"))),
        of(|params| params["message"]["messageId"] = json!("")),
        of(|params| params["message"]["messageId"] = json!("x".repeat(300))),
        of(|params| params["message"]["role"] = json!("ROLE_AGENT")),
        of(|params| params["message"]["role"] = json!("user")),
        of(|params| params["message"]["parts"] = json!([])),
        of(|params| params["message"]["parts"] = json!([{}])),
        of(|params| params["message"]["parts"] = json!([{ "text": "a", "url": "b" }])),
        of(|params| params["message"]["parts"] = json!([{ "text": " " }])),
        of(|params| params["configuration"] = json!({ "historyLength": -1 })),
        of(|params| params["tenant"] = json!("other")),
    ];
    for params in cases {
        let reply = world.rpc("SendMessage", params.clone()).await;
        assert_eq!(error(&reply).0, -32602, "{params}: {reply}");
        let details = reply["error"]["data"].as_array().unwrap();
        assert!(details.iter().all(|detail| detail["@type"].is_string()), "{reply}");
    }
    world.ended().await;
}

#[tokio::test]
async fn versions_are_negotiated() {
    let world = World::new().await;
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "ListTasks" });
    for (header, path, accepted) in [
        ("a2a-version: 1.0\r\n", "/a2a/helper", true),
        ("A2A-Version: 1.0.1\r\n", "/a2a/helper", true),
        ("", "/a2a/helper?A2A-Version=1.0", true),
        ("", "/a2a/helper", false),
        ("a2a-version: \r\n", "/a2a/helper", false),
        ("a2a-version: 0.3\r\n", "/a2a/helper", false),
        ("a2a-version: 1.1\r\n", "/a2a/helper", false),
        ("a2a-version: 1.0x\r\n", "/a2a/helper", false),
        ("a2a-version: 99.0\r\n", "/a2a/helper", false),
    ] {
        let reply = world.raw(&request("POST", path, header, Some(&body))).await.json();
        if accepted {
            assert!(reply["result"].is_object(), "{header}{path}: {reply}");
        } else {
            assert_eq!(error(&reply), (-32009, "VERSION_NOT_SUPPORTED".to_owned()), "{header}");
            let http = world.raw(&request("GET", "/a2a/helper/tasks", header, None)).await;
            assert_eq!(http.status, 400, "{header}: {http:?}");
        }
    }
    world.ended().await;
}

#[tokio::test]
async fn both_bindings_do_the_same() {
    let world = World::new().await;
    let sent = world.http("POST", "/a2a/helper/message:send", Some(&message("m1", "hello"))).await;
    assert_eq!(sent.status, 200, "{sent:?}");
    let task = sent.json()["task"].clone();
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    let id = task["id"].as_str().unwrap();
    for path in
        [format!("/a2a/helper/tasks/{id}"), format!("/a2a/helper/tasks/{id}/?historyLength=1")]
    {
        let got = world.http("GET", &path, None).await.json();
        assert_eq!(got["id"], task["id"], "{got}");
    }
    let got = world.rpc("GetTask", json!({ "id": id })).await["result"].clone();
    assert_eq!(got, world.http("GET", &format!("/a2a/helper/tasks/{id}"), None).await.json());
    let path = "/a2a/helper/tasks?pageSize=1&status=TASK_STATE_COMPLETED&includeArtifacts=true";
    let listed = world.http("GET", path, None).await.json();
    assert_eq!(listed["tasks"][0]["id"], task["id"], "{listed}");
    let stream =
        world.http("POST", "/a2a/helper/message:stream", Some(&message("m2", "slow"))).await;
    let events = stream.events();
    assert!(events[0]["task"].is_object(), "{events:?}");
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "ListTasks" });
    let slash = world.http("POST", "/a2a/helper/", Some(&body)).await.json();
    assert!(slash["result"].is_object(), "{slash}");
    world.ended().await;
}

/// Without what differs between two calls of the same operation.
fn alike(mut value: Value) -> Value {
    // A signature has a random part.
    if let Some(card) = value.as_object_mut() {
        card.remove("signatures");
    }
    if let Some(artifacts) = value["artifacts"].as_array_mut() {
        artifacts.sort_by_key(|artifact| artifact["artifactId"].to_string());
    }
    value
}

#[tokio::test]
async fn every_operation_is_the_same_in_both_bindings() {
    let world = World::with(ExposedAgents::AllOnLoopback, &["127.0.0.1:9"]).await;
    let task = world.stalling("m1").await;
    let id = task["id"].as_str().unwrap();
    let config = json!({ "taskId": id, "id": "mine", "url": "http://127.0.0.1:9/hook" });
    let made = world.rpc("CreateTaskPushNotificationConfig", config.clone()).await;
    assert_eq!(made["result"], config);
    let configs = format!("/a2a/helper/tasks/{id}/pushNotificationConfigs");
    let one = format!("{configs}/mine");
    let path = format!("/a2a/helper/tasks/{id}");
    let of_task = json!({ "taskId": id });
    let of_config = json!({ "taskId": id, "id": "mine" });
    for (method, params, verb, path) in [
        ("GetTask", json!({ "id": id }), "GET", path.as_str()),
        ("ListTasks", json!({}), "GET", "/a2a/helper/tasks"),
        ("GetTaskPushNotificationConfig", of_config.clone(), "GET", one.as_str()),
        ("ListTaskPushNotificationConfigs", of_task.clone(), "GET", configs.as_str()),
        ("GetExtendedAgentCard", json!({}), "GET", "/a2a/helper/extendedAgentCard"),
    ] {
        let rpc = world.rpc(method, params).await["result"].clone();
        let http = world.http(verb, path, None).await;
        assert_eq!(http.status, 200, "{method}: {http:?}");
        assert_eq!(alike(rpc), alike(http.json()), "{method}");
    }
    let again = world.http("POST", &configs, Some(&config)).await.json();
    assert_eq!(again, config, "it replaces the one of its id");
    for _ in 0..2 {
        let deleted = world.http("DELETE", &one, None).await;
        assert_eq!(deleted.status, 200, "{deleted:?}");
        let deleted = world.rpc("DeleteTaskPushNotificationConfig", of_config.clone()).await;
        assert_eq!(deleted["result"], json!({}));
    }
    let canceled = world.http("POST", &format!("{path}:cancel"), Some(&json!({}))).await.json();
    assert_eq!(canceled["status"]["state"], "TASK_STATE_CANCELED", "{canceled}");
    let got = world.rpc("GetTask", json!({ "id": id })).await["result"].clone();
    assert_eq!(alike(got), alike(canceled));
    let sent = world.http("POST", "/a2a/helper/message:send", Some(&message("m2", "hello"))).await;
    let same = world.rpc("SendMessage", message("m2", "hello")).await;
    assert_eq!(sent.json()["task"], same["result"]["task"], "one message id is one task");
    let said = message("m3", "hello");
    let streamed = world.http("POST", "/a2a/helper/message:stream", Some(&said)).await;
    let streamed: Vec<String> = streamed.events().iter().map(kinds).collect();
    let rpc: Vec<String> = world
        .stream("SendStreamingMessage", message("m4", "hello"))
        .await
        .iter()
        .map(kinds)
        .collect();
    assert_eq!((&streamed[0], streamed.last()), (&rpc[0], rpc.last()));
    let subscribe = world.http("POST", &format!("{path}:subscribe"), Some(&json!({}))).await;
    assert_eq!(subscribe.status, 400, "it has ended: {subscribe:?}");
    let reply = world.rpc("SubscribeToTask", json!({ "id": id })).await;
    assert_eq!(error(&reply).1, subscribe.json()["error"]["details"][0]["reason"]);
    world.ended().await;
}

/// Which member a response of a stream has.
fn kinds(response: &Value) -> String {
    response.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn capabilities_of_the_card_are_kept() {
    let world = World::with(ExposedAgents::AllOnLoopback, &["127.0.0.1:9"]).await;
    let card = world.rpc("GetExtendedAgentCard", json!({})).await["result"].clone();
    let capabilities = &card["capabilities"];
    for name in ["streaming", "pushNotifications", "extendedAgentCard"] {
        assert_eq!(capabilities[name], true, "{name}: {capabilities}");
    }
    assert!(!world.stream("SendStreamingMessage", message("m1", "hello")).await.is_empty());
    let id = world.stalling("m2").await["id"].clone();
    let config = json!({ "taskId": id, "url": "http://127.0.0.1:9/" });
    let made = world.rpc("CreateTaskPushNotificationConfig", config).await;
    assert!(made["result"]["id"].is_string(), "{made}");
    world.ended().await;
}

#[tokio::test]
async fn queries_are_read_like_parameters() {
    let world = World::new().await;
    let task = world.task("m1", "hello").await;
    world.task("m2", "hello").await;
    let context = task["contextId"].as_str().unwrap();
    for (query, params) in [
        ("pageSize=1".to_owned(), json!({ "pageSize": 1 })),
        (format!("contextId={context}"), json!({ "contextId": context })),
        ("status=TASK_STATE_COMPLETED".to_owned(), json!({ "status": "TASK_STATE_COMPLETED" })),
        ("status=TASK_STATE_FAILED".to_owned(), json!({ "status": "TASK_STATE_FAILED" })),
        (
            "historyLength=1&includeArtifacts=true".to_owned(),
            json!({ "historyLength": 1, "includeArtifacts": true }),
        ),
    ] {
        let http = world.http("GET", &format!("/a2a/helper/tasks?{query}"), None).await;
        assert_eq!(http.status, 200, "{query}: {http:?}");
        let rpc = world.rpc("ListTasks", params).await["result"].clone();
        assert_eq!(http.json(), rpc, "{query}");
    }
    world.ended().await;
}
