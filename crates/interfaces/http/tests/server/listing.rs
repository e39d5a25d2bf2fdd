//! Lists of tasks: filtered, and page by page.

use antiphon_core::port::{Append, Expected, IdempotencyKey, JournalLog};
use antiphon_core::{SessionId, StatusChanged, TaskCreated, TaskId, TaskStatus};
use chrono::Utc;
use serde_json::{Value, json};

use crate::client::get;
use crate::tasks::accepted;
use crate::world::TestServer;

async fn create(
    server: &TestServer,
    n: u8,
    agent: &str,
    parent: Option<u8>,
    session: &str,
    status: TaskStatus,
) {
    let id = |n: u8| TaskId::parse(&format!("t{n}")).unwrap();
    let session_id = SessionId::parse(session).unwrap();
    let created = TaskCreated { parent: parent.map(id), ..TaskCreated::new(agent, session_id) };
    let append = Append {
        task_id: id(n),
        expected: Expected::NoTask,
        at: Utc::now(),
        events: vec![created.into(), StatusChanged::new(status).into()],
        key: None,
    };
    server.journal.append(append).await.unwrap();
}

async fn listed(server: &TestServer, query: &str) -> (Vec<String>, Option<String>) {
    let reply = get(server.address, &format!("/v1/tasks?{query}")).await;
    assert_eq!(reply.status, 200, "{query}: {reply:?}");
    let page = reply.json();
    let tasks = page["tasks"].as_array().unwrap().iter();
    let tasks = tasks.map(|task| task["task_id"].as_str().unwrap().to_owned()).collect();
    (tasks, page["next_cursor"].as_str().map(str::to_owned))
}

async fn world() -> TestServer {
    let server = TestServer::new().await;
    create(&server, 1, "lead", None, "a", TaskStatus::Completed).await;
    create(&server, 2, "dev", Some(1), "b", TaskStatus::Failed).await;
    create(&server, 3, "lead", None, "b", TaskStatus::Running).await;
    server
        .orchestrator
        .record("did it", json!(null), IdempotencyKey("order".to_owned()))
        .await
        .unwrap();
    create(&server, 4, "lead", None, "a", TaskStatus::Failed).await;
    server
}

#[tokio::test]
async fn tasks_are_listed_by_filter() {
    let server = world().await;
    for (query, expected) in [
        ("", vec!["t4", "t3", "t2", "t1"]),
        ("status=running,failed", vec!["t4", "t3", "t2"]),
        ("status=failed&agent=lead", vec!["t4"]),
        ("agent=dev", vec!["t2"]),
        ("agent=nobody", vec![]),
        ("session_id=a", vec!["t4", "t1"]),
        ("session_id=a&status=completed", vec!["t1"]),
        ("tops=true", vec!["t4", "t3", "t1"]),
        ("unfinished=true", vec!["t3"]),
        ("status=failed&tops=true&agent=lead&session_id=a", vec!["t4"]),
    ] {
        let (tasks, next) = listed(&server, query).await;
        assert_eq!(
            (tasks, next),
            (expected.iter().map(|&it| it.to_owned()).collect(), None),
            "{query}"
        );
    }
    // Records of orders are listed only with `all`.
    assert_eq!(listed(&server, "all=true").await.0.len(), 5);
    server.ended().await;
}

#[tokio::test]
async fn the_next_page_continues_the_last_one_also_after_additions() {
    let server = world().await;
    let (first, next) = listed(&server, "limit=2").await;
    assert_eq!(first, ["t4", "t3"]);
    create(&server, 5, "lead", None, "a", TaskStatus::Running).await;
    let (second, next) = listed(&server, &format!("limit=2&cursor={}", next.unwrap())).await;
    assert_eq!((second, next), (vec!["t2".to_owned(), "t1".to_owned()], None));
    let (failed, next) = listed(&server, "limit=1&status=failed").await;
    assert_eq!(failed, ["t4"]);
    let (failed, next) =
        listed(&server, &format!("limit=1&status=failed&cursor={}", next.unwrap())).await;
    assert_eq!((failed, next), (vec!["t2".to_owned()], None));
    server.ended().await;
}

#[tokio::test]
async fn an_invalid_list_query_is_refused() {
    let server = world().await;
    for query in [
        "status=done",
        "status=",
        "status=Failed",
        "status=failed&unfinished=true",
        "cursor=t9",
        "cursor=",
        "limit=0",
        "limit=1001",
        "tops=perhaps",
        "session_id=",
    ] {
        let reply = get(server.address, &format!("/v1/tasks?{query}")).await;
        assert_eq!((reply.status, reply.code().as_str()), (400, "INVALID_REQUEST"), "{query}");
    }
    server.ended().await;
}

#[tokio::test]
async fn tasks_are_found_by_the_beginning_of_their_id_and_by_nothing_else_at_once() {
    let server = TestServer::new().await;
    let task_id = accepted(&server, "one").await;
    accepted(&server, "two").await;
    let address = server.address;
    let listed = |query: String| async move { get(address, &format!("/v1/tasks?{query}")).await };
    let found = listed(format!("id_prefix={task_id}")).await.json();
    assert_eq!(found["tasks"].as_array().unwrap().len(), 1, "{found}");
    assert_eq!(found["tasks"][0]["task_id"], task_id.as_str());
    let found = listed(format!("id_prefix={}&limit=1", &task_id.as_str()[..4])).await.json();
    assert_eq!(
        (found["tasks"].as_array().unwrap().len(), &found["next_cursor"]),
        (1, &Value::Null)
    );
    assert_eq!(listed("id_prefix=none".to_owned()).await.json()["tasks"], json!([]));
    for other in ["tops=true", "all=true", "unfinished=true", "agent=a", "status=failed"] {
        let refused = listed(format!("id_prefix=a&{other}")).await;
        assert_eq!(refused.status, 400, "{other}: {refused:?}");
    }
    server.ended().await;
}
