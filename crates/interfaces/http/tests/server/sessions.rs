//! Conversations over HTTP.

use antiphon_core::TaskId;
use antiphon_project::{session_of, session_summary};
use serde_json::{Value, json};

use crate::client::{get, order, post, post_as, request, say};
use crate::tasks::accepted;
use crate::world::TestServer;

const SESSIONS: &str = "/v1/sessions";

fn file(id: &str, messages: &Value) -> Value {
    let at = "2026-01-02T03:04:05Z";
    json!({"version": 1, "id": id, "system_prompt": "Be brief.", "created_at": at,
        "updated_at": at, "messages": messages})
}

fn hello() -> Value {
    json!([{"type": "user", "content": [{"type": "text", "text": "hello"}],
        "timestamp": "2026-01-02T03:04:05Z"}])
}

#[tokio::test]
async fn a_session_is_listed_shown_and_exported_to_the_byte() {
    let server = TestServer::new().await;
    let first = accepted(&server, "one").await;
    server.orchestrator.wait(&first).await.unwrap();
    let session_id = server.orchestrator.task(&first).await.unwrap().created.session_id;
    let listed = get(server.address, SESSIONS).await.json();
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
    let found = session_summary(&server.orchestrator, &session_id).await.unwrap().unwrap();
    assert_eq!(json!(found), listed["sessions"][0], "one look is as good as the other");
    let shown = get(server.address, &format!("{SESSIONS}/{session_id}")).await.json();
    assert_eq!(shown["last_task"], json!(first));
    assert_eq!(shown["messages"][0]["content"][0]["text"], "one");
    assert_eq!(shown["messages"].as_array().unwrap().len(), 2);
    let exported = get(server.address, &format!("{SESSIONS}/{session_id}/export")).await;
    let session = session_of(&server.orchestrator, found).await.unwrap();
    assert_eq!(exported.body, antiphon_session_file::to_json(&session).unwrap());
    assert!(exported.head.contains("content-type: application/json"), "{exported:?}");
    server.ended().await;
}

#[tokio::test]
async fn sessions_are_listed_page_by_page() {
    let server = TestServer::new().await;
    for id in ["one", "two", "three"] {
        assert_eq!(post(server.address, SESSIONS, &file(id, &hello())).await.status, 201);
    }
    let ids = |page: &Value| -> Vec<String> {
        let sessions = page["sessions"].as_array().unwrap().iter();
        sessions.map(|session| session["session_id"].as_str().unwrap().to_owned()).collect()
    };
    let first = get(server.address, &format!("{SESSIONS}?limit=2")).await.json();
    assert_eq!(ids(&first), ["three", "two"]);
    let cursor = first["next_cursor"].as_str().unwrap();
    let last = get(server.address, &format!("{SESSIONS}?limit=2&cursor={cursor}")).await.json();
    assert_eq!((ids(&last), &last["next_cursor"]), (vec!["one".to_owned()], &Value::Null));
    let unknown = get(server.address, &format!("{SESSIONS}?cursor=none")).await;
    assert_eq!((unknown.status, unknown.code().as_str()), (400, "INVALID_REQUEST"));
    server.ended().await;
}

#[tokio::test]
async fn an_imported_session_is_exported_unchanged_and_can_be_continued() {
    let server = TestServer::new().await;
    let reply = post(server.address, SESSIONS, &file("talk", &hello())).await;
    assert_eq!((reply.status, &reply.json()["session_id"]), (201, &json!("talk")), "{reply:?}");
    let exported = get(server.address, &format!("{SESSIONS}/talk/export")).await.json();
    assert_eq!(exported["messages"], hello());
    assert_eq!(exported["system_prompt"], "Be brief.");
    let forked = order(server.address, &format!("{SESSIONS}/talk/fork")).await;
    assert_eq!(forked.status, 201, "{forked:?}");
    let forked = forked.json();
    let session_id = forked["session_id"].as_str().unwrap();
    assert_ne!(session_id, "talk");
    let shown = get(server.address, &format!("{SESSIONS}/{session_id}")).await.json();
    assert_eq!(shown["messages"], hello(), "everything that was said is in it");
    let task_id = TaskId::parse(forked["task_id"].as_str().unwrap()).unwrap();
    let created = server.orchestrator.task(&task_id).await.unwrap().created;
    assert!(created.history.is_some(), "nothing is copied");
    server.ended().await;
}

#[tokio::test]
async fn an_invalid_session_file_is_refused_and_stores_nothing() {
    let server = TestServer::new().await;
    let mut later = file("talk", &hello());
    later["version"] = json!(2);
    let strange = json!([{"type": "nonsense"}]);
    for (body, named) in [
        (json!({}), "version"),
        (json!([]), "not a session file: it is a list"),
        (later, "version 2"),
        (file("a b", &hello()), "identifier"),
        (file("talk", &strange), "`messages[0]`: unknown message type `nonsense`"),
    ] {
        let reply = post(server.address, SESSIONS, &body).await;
        assert_eq!((reply.status, reply.code().as_str()), (400, "INVALID_REQUEST"), "{body}");
        assert!(reply.body.contains(named), "{}", reply.body);
    }
    for (method, path) in
        [("GET", "nobody"), ("GET", "nobody/export"), ("POST", "nobody/fork"), ("GET", "a%20b")]
    {
        let text = request(server.address, method, &format!("{SESSIONS}/{path}"), None);
        let reply = say(server.address, &text).await;
        assert_eq!((reply.status, reply.code().as_str()), (404, "NOT_FOUND"), "{path}");
    }
    for query in ["limit=0", "limit=1001"] {
        assert_eq!(get(server.address, &format!("{SESSIONS}?{query}")).await.status, 400);
    }
    assert_eq!(get(server.address, SESSIONS).await.json(), json!({"sessions": []}));
    server.ended().await;
}

#[tokio::test]
async fn an_import_does_not_replace_an_existing_session() {
    let server = TestServer::new().await;
    let talk = file("talk", &hello());
    let first = post_as(server.address, "once", SESSIONS, &talk).await;
    assert_eq!(first.status, 201, "{first:?}");
    let again = post_as(server.address, "once", SESSIONS, &talk).await;
    assert_eq!((again.status, again.json()), (200, first.json()));
    let before = get(server.address, &format!("{SESSIONS}/talk")).await.json();
    let reply = post(server.address, SESSIONS, &file("talk", &json!([]))).await;
    assert_eq!((reply.status, reply.code().as_str()), (409, "CONFLICT"), "{reply:?}");
    assert!(reply.body.contains("fork"), "{}", reply.body);
    assert_eq!(get(server.address, &format!("{SESSIONS}/talk")).await.json(), before);
    server.ended().await;
}
