//! Tasks are accepted, listed and shown.

use antiphon_core::port::{Append, Clock, Expected, JournalLog, SystemClock};
use antiphon_core::{
    InputBlock, Message, SessionId, StatusChanged, TaskCreated, TaskId, TaskStatus,
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::client::{Reply, get, post, request, say};
use crate::world::TestServer;

pub(crate) async fn accepted(server: &TestServer, message: &str) -> TaskId {
    let reply = post(server.address, "/v1/tasks", &json!({"message": message})).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    TaskId::parse(reply.json()["task_id"].as_str().unwrap()).unwrap()
}

#[tokio::test]
async fn a_task_is_created_completed_and_shown() {
    let server = TestServer::new().await;
    let task_id = accepted(&server, "a look").await;
    server.orchestrator.wait(&task_id).await.unwrap();
    let shown = get(server.address, &format!("/v1/tasks/{task_id}")).await;
    let shown = shown.json();
    assert_eq!(shown["task_id"], json!(task_id));
    assert_eq!(shown["status"], "completed");
    assert_eq!(shown["result"], "Done with a look");
    assert_eq!(shown["calls"], 1);
    assert_eq!(shown.get("reason"), None);
    let listed = get(server.address, "/v1/tasks?limit=5").await.json();
    assert_eq!(listed["tasks"][0]["task_id"], json!(task_id));
    let open = get(server.address, "/v1/tasks?unfinished=true").await.json();
    assert_eq!(open, json!({"tasks": []}));
    server.ended().await;
}

#[tokio::test]
async fn every_field_of_a_request_reaches_the_task_factory() {
    let server = TestServer::new().await;
    let schema = json!({"type": "object", "properties": {"n": {"type": "number"}}});
    let tool =
        json!({"name": "ask_client", "description": "Asks.", "parameters": {"type": "object"}});
    let call = json!({"type": "tool_call", "id": "c1", "name": "look", "arguments": {"at": 1.0}});
    let body = json!({
        "agent": "reviewer",
        "model": "scripted/other",
        "message": {"content": [{"type": "text", "text": "hello"}]},
        "history": [
            {"type": "user", "content": [{"type": "text", "text": "before"}], "timestamp": "2026-01-01T00:00:00Z"},
            {"type": "assistant", "content": [call], "stop_reason": "tool_use", "timestamp": "2026-01-01T00:00:00Z"},
        ],
        "system_prompt": "Be brief.",
        "tools": ["look"],
        "agents": [],
        "external_tools": [tool],
        "limits": {"turns_max": 3},
        "output_schema": schema,
        "unknown": "is ignored",
    });
    let reply = post(server.address, "/v1/tasks", &body).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    let requested = server.task_factory.requested.lock().unwrap().pop().unwrap();
    assert_eq!(requested.agent.as_deref(), Some("reviewer"));
    assert_eq!(requested.model.unwrap().to_string(), "scripted/other");
    assert_eq!(requested.message.content, [InputBlock::text("hello")]);
    assert_eq!(requested.history.len(), 2);
    let Message::Assistant(answer) = &*requested.history[1] else { panic!("no answer") };
    let arguments = answer.tool_calls().next().unwrap().arguments.object().unwrap().clone();
    assert_eq!(arguments.as_str(), r#"{"at":1.0}"#);
    assert_eq!(requested.system_prompt.as_deref(), Some("Be brief."));
    assert_eq!(requested.tools.unwrap(), ["look"]);
    assert_eq!(requested.agents.unwrap(), Vec::<String>::new());
    assert_eq!(requested.external_tools[0].name, "ask_client");
    assert_eq!(requested.limits.turns_max.unwrap().get(), 3);
    assert!(requested.output_schema.is_some());
    server.ended().await;
}

async fn keyed(address: std::net::SocketAddr, key: &str, message: &str) -> Reply {
    let body = json!({"message": message}).to_string();
    let line = format!("\r\nidempotency-key: {key}\r\n");
    say(address, &request(address, "POST", "/v1/tasks", Some(&body)).replacen("\r\n", &line, 1))
        .await
}

#[tokio::test]
async fn the_same_key_returns_the_same_task_which_is_started_once() {
    let server = TestServer::new().await;
    let address = server.address;
    let first = keyed(address, "k1", "one").await;
    assert_eq!(first.status, 201);
    let again = keyed(address, "k1", "two").await;
    assert_eq!((again.status, again.json()), (200, first.json()));
    let mut asking = JoinSet::new();
    for _ in 0..16 {
        asking.spawn(async move { keyed(address, "k2", "three").await.json() });
    }
    let answers: Vec<Value> = asking.join_all().await;
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    let listed = get(address, "/v1/tasks").await.json();
    assert_eq!(listed["tasks"].as_array().unwrap().len(), 2);
    for bad in ["", "é", &"k".repeat(257)] {
        let reply = keyed(address, bad, "four").await;
        assert_eq!((reply.status, reply.code().as_str()), (400, "INVALID_REQUEST"), "{bad}");
    }
    server.ended().await;
}

#[tokio::test]
async fn a_tree_is_a_task_and_its_descendants() {
    let server = TestServer::new().await;
    let root = accepted(&server, "hang").await;
    let session = SessionId::parse("s").unwrap();
    let child = |name: &str, parent: &TaskId| {
        let created = TaskCreated {
            parent: Some(parent.clone()),
            root: Some(root.clone()),
            ..TaskCreated::new("child", session.clone())
        };
        let done = StatusChanged::new(TaskStatus::Completed);
        Append {
            task_id: TaskId::parse(name).unwrap(),
            expected: Expected::NoTask,
            at: SystemClock.now(),
            events: vec![created.into(), done.into()],
            key: None,
        }
    };
    let (left, right) = (TaskId::parse("left").unwrap(), TaskId::parse("right").unwrap());
    for append in [child("left", &root), child("right", &root), child("below", &left)] {
        server.journal.append(append).await.unwrap();
    }
    let names = |reply: Reply| {
        let tasks = reply.json()["tasks"].as_array().unwrap().clone();
        tasks.iter().map(|task| task["task_id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let whole = names(get(server.address, &format!("/v1/tasks/{root}/tree")).await);
    assert_eq!(whole, [root.as_str(), "left", "right", "below"]);
    assert_eq!(names(get(server.address, "/v1/tasks/left/tree").await), ["left", "below"]);
    assert_eq!(names(get(server.address, &format!("/v1/tasks/{right}/tree")).await), ["right"]);
    server.orchestrator.cancel(&root).await.unwrap();
    server.ended().await;
}

#[tokio::test]
async fn an_invalid_task_is_refused_with_the_name_of_the_field() {
    let server = TestServer::new().await;
    let tool = |name: &str| json!({"name": name, "description": "", "parameters": {}});
    let many: Vec<Value> = (0..513).map(|n| tool(&format!("t{n}"))).collect();
    for (body, named) in [
        (json!({}), "message"),
        (json!({"message": ""}), "message"),
        (json!({"message": "  \n"}), "message"),
        (json!({"message": 7}), "message"),
        (json!({"message": {"content": []}}), "message"),
        (json!({"message": {"content": [{"type": "thinking", "thinking": "x"}]}}), "thinking"),
        (json!({"message": "hi", "model": "nonsense"}), "PROVIDER/MODEL"),
        (
            json!({"message": "hi", "history": [{"type": "system"}]}),
            "unknown message type `system`",
        ),
        (json!({"message": "hi", "limits": {"turns_max": 0}}), "zero"),
        (json!({"message": "hi", "output_schema": {"type": "nonsense"}}), "schema"),
        (json!({"message": "hi", "session_id": "a b"}), "identifier"),
        (
            json!({"message": "hi", "external_tools": [tool("a"), tool("a")]}),
            "a tool of that name exists",
        ),
        (json!({"message": "hi", "external_tools": [tool("a b")]}), "a b"),
        (json!({"message": "hi", "external_tools": many}), "512"),
        (json!({"message": "hi", "limits": {"cost_nano_usd_max": 5}}), "price"),
    ] {
        let reply = post(server.address, "/v1/tasks", &body).await;
        assert_eq!((reply.status, reply.code().as_str()), (400, "INVALID_REQUEST"), "{body}");
        assert!(reply.body.contains(named), "{body}: {}", reply.body);
    }
    let reply =
        post(server.address, "/v1/tasks", &json!({"message": "hi", "agent": "nobody"})).await;
    assert_eq!((reply.status, reply.code().as_str()), (404, "NOT_FOUND"));
    assert_eq!(get(server.address, "/v1/tasks").await.json(), json!({"tasks": []}));
    for query in ["limit=0", "limit=1001", "limit=x", "unfinished=perhaps"] {
        let reply = get(server.address, &format!("/v1/tasks?{query}")).await;
        assert_eq!((reply.status, reply.code().as_str()), (400, "INVALID_REQUEST"), "{query}");
    }
    server.ended().await;
}

#[tokio::test]
async fn a_task_gives_back_the_ids_and_metadata_of_its_canonical_messages() {
    let server = TestServer::new().await;
    let message = json!({ "id": "7f9c24e8-3b12-4fef-91e0-5f2d0e5a1c11", "role": "user",
        "content": "hi", "timestamp": "2026-01-02T03:04:05Z", "metadata": { "ticket": "42" } });
    let reply =
        post(server.address, "/v1/chat/completions", &json!({ "messages": [message] })).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let task = reply.head.lines().find_map(|line| line.strip_prefix("x-antiphon-task: ")).unwrap();
    let shown = get(server.address, &format!("/v1/tasks/{task}")).await.json();
    let mut expected = message;
    expected.as_object_mut().unwrap().remove("content");
    assert_eq!(shown["canonical"], json!([expected]));
    server.ended().await;
}

fn hi() -> Value {
    json!({ "type": "user", "content": [], "timestamp": "2025-01-20T10:00:00Z" })
}

#[tokio::test]
async fn an_unknown_type_of_a_message_is_named_before_what_is_missing() {
    let server = TestServer::new().await;
    for message in [
        json!({ "type": "robot" }),
        json!({ "type": "robot", "content": [{ "text": "x" }], "usage": {} }),
        json!({ "type": "robot", "parts": "none" }),
    ] {
        let reply = post(server.address, "/v1/tasks", &json!({ "message": message })).await;
        let refused = reply.json();
        let reason = refused["details"]["reason"].as_str().unwrap();
        assert!(reply.status == 400 && reason.contains("`robot`"), "{message}: {refused}");
    }
    server.ended().await;
}

#[tokio::test]
async fn an_invalid_body_names_the_field_and_the_reason() {
    let server = TestServer::new().await;
    for (body, field) in [
        (json!({ "message": "hi", "limits": { "turns_max": "many" } }), "limits.turns_max"),
        (json!({ "message": "hi", "model": 7 }), "model"),
        (json!({ "message": 7 }), "message"),
        (json!({ "message": " " }), "message"),
        (json!({ "message": { "type": "robot" } }), "message"),
        (json!({ "message": "hi", "history": [hi()], "session_id": "s" }), "history"),
        (json!([]), "body"),
    ] {
        let reply = post(server.address, "/v1/tasks", &body).await;
        let refused = reply.json();
        assert_eq!((reply.status, &refused["details"]["field"]), (400, &json!(field)), "{refused}");
        assert!(!refused["details"]["reason"].as_str().unwrap().is_empty(), "{refused}");
    }
    server.ended().await;
}
