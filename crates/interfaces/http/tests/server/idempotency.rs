//! A request repeated under one key is carried out once, also by another server on the same journal, and
//! keys of different callers are independent.

use std::sync::Arc;

use antiphon_core::port::Journal;
use antiphon_interface_transport::ServerLimits;
use antiphon_keys::Level;
use serde_json::{Value, json};

use crate::client::{Reply, get, post_as, request, say};
use crate::key_server::Keyed;
use crate::tasks::accepted;
use crate::world::{TOKEN, TestServer};

fn session(id: &str) -> Value {
    json!({"version": 1, "id": id, "created_at": "2026-01-02T03:04:05Z",
        "updated_at": "2026-01-02T03:04:05Z", "messages": []})
}

/// The same world after a restart.
async fn again(server: TestServer) -> TestServer {
    let journal = Arc::clone(&server.journal);
    server.ended().await;
    TestServer::over(Arc::clone(&journal) as Arc<dyn Journal>, journal, ServerLimits::default())
        .await
}

#[tokio::test]
async fn a_repeated_post_is_done_once_also_after_a_restart() {
    let server = TestServer::new().await;
    let task_id = accepted(&server, "act").await;
    server.orchestrator.wait(&task_id).await.unwrap();
    assert_eq!(post_as(server.address, "i", "/v1/sessions", &session("talk")).await.status, 201);
    let target = json!({"agent": {"type": "named", "agent_id": "mute"}, "message": "x"});
    let messages = format!("/v1/tasks/{task_id}/messages");
    let posts = [
        ("/v1/tasks", json!({"message": "x"}), 201, 200),
        (messages.as_str(), json!({"text": "x"}), 202, 202),
        ("/v1/invocations", json!({"targets": [target], "join": "detached"}), 202, 202),
        ("/v1/sessions", session("chat"), 201, 200),
        ("/v1/sessions/talk/fork", json!({}), 201, 200),
        ("/v1/agents", json!({"name": "scribe", "context": "x"}), 201, 200),
    ];
    let mut firsts = Vec::new();
    for (path, body, status, repeated) in &posts {
        let first = post_as(server.address, "k", path, body).await;
        assert_eq!(first.status, *status, "{path}: {first:?}");
        let second = post_as(server.address, "k", path, body).await;
        assert_eq!((second.status, second.json()), (*repeated, first.json()), "{path}");
        firsts.push(first.json());
    }
    let count = |reply: Reply| reply.json()["tasks"].as_array().unwrap().len();
    let tasks = count(get(server.address, "/v1/tasks?limit=1000").await);
    // A repeated request after the end of the task gets the same answer, too.
    server.orchestrator.cancel(&task_id).await.unwrap();
    let server = again(server).await;
    for ((path, body, _, repeated), first) in posts.iter().zip(firsts) {
        let reply = post_as(server.address, "k", path, body).await;
        assert_eq!((reply.status, reply.json()), (*repeated, first), "{path}");
    }
    assert_eq!(count(get(server.address, "/v1/tasks?limit=1000").await), tasks);
    let late = post_as(server.address, "other", &messages, &json!({"text": "x"})).await;
    assert_eq!((late.status, late.code().as_str()), (409, "CONFLICT"));
    for (path, body, ..) in &posts {
        let reply = post_as(server.address, "", path, body).await;
        assert_eq!((reply.status, reply.code().as_str()), (400, "INVALID_REQUEST"), "{path}");
    }
    server.ended().await;
}

#[tokio::test]
async fn idempotency_keys_of_different_callers_never_collide() {
    let keyed = Keyed::new().await;
    let (one, other) = (keyed.person(Level::Admin), keyed.person(Level::Admin));
    let reviewer = antiphon_core::AgentName::parse("reviewer").unwrap();
    let live = keyed
        .server
        .orchestrator
        .start_agent(&reviewer, &antiphon_core::Provenance::Owner)
        .await
        .unwrap();
    keyed.server.orchestrator.pause(&live.task_id).await.unwrap();
    // There is one session of an id: a second request for the same id is refused, and does not get it.
    for (key, status) in [(TOKEN, 201), (&one, 409), (&other, 409), (TOKEN, 200)] {
        let body = session("talk").to_string();
        let text = request(keyed.server.address, "POST", "/v1/sessions", Some(&body));
        let text = text.replacen(TOKEN, key, 1);
        let text = text.replacen("\r\n", "\r\nidempotency-key: k\r\n", 1);
        assert_eq!(say(keyed.server.address, &text).await.status, status, "{key}");
    }
    let target = json!({"agent": {"type": "named", "agent_id": "mute"}, "message": "x"});
    let messages = format!("/v1/tasks/{}/messages", live.task_id);
    for (path, body, field) in [
        ("/v1/tasks", json!({"message": "x"}), "task_id"),
        (messages.as_str(), json!({"text": "x"}), "interaction_id"),
        ("/v1/invocations", json!({"targets": [target], "join": "detached"}), "task_ids"),
        ("/v1/sessions/talk/fork", json!({}), "task_id"),
        ("/v1/agents/reviewer/inbox", json!({"message": "x"}), "id"),
    ] {
        let mut made = Vec::new();
        for key in [TOKEN, &one, &other, TOKEN, &one, &other] {
            let text = request(keyed.server.address, "POST", path, Some(&body.to_string()));
            let text = text.replacen(TOKEN, key, 1);
            let text = text.replacen("\r\n", "\r\nidempotency-key: k\r\n", 1);
            let reply = say(keyed.server.address, &text).await;
            assert!((200..300).contains(&reply.status), "{path}: {reply:?}");
            made.push(reply.json()[field].clone());
        }
        assert_eq!(made[..3], made[3..], "{path}: the same again");
        assert!(made[0] != made[1] && made[1] != made[2] && made[0] != made[2], "{path}: {made:?}");
    }
    keyed.server.ended().await;
}

#[tokio::test]
async fn a_key_that_is_there_twice_or_has_a_tab_is_refused() {
    let server = TestServer::new().await;
    let body = json!({"message": "x"}).to_string();
    for lines in [
        "idempotency-key: one\r\nidempotency-key: two",
        "idempotency-key: one\r\nidempotency-key: one",
        "idempotency-key: a\tb",
        "idempotency-key:",
    ] {
        let text = request(server.address, "POST", "/v1/tasks", Some(&body));
        let reply =
            say(server.address, &text.replacen("\r\n", &format!("\r\n{lines}\r\n"), 1)).await;
        assert_eq!((reply.status, reply.code().as_str()), (400, "INVALID_REQUEST"), "{lines:?}");
    }
    let listed = get(server.address, "/v1/tasks").await.json();
    assert_eq!(listed["tasks"], json!([]), "nothing was done");
    server.ended().await;
}
