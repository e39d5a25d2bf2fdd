//! Lists of tasks: filtered, and page by page.

use antiphon_core::port::{Append, Expected, IdempotencyKey, JournalLog};
use antiphon_core::{SessionId, StatusChanged, TaskCreated, TaskId, TaskStatus};
use chrono::Utc;
use serde_json::json;

use crate::client::get;
use crate::world::Served;

async fn create(
    served: &Served,
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
    served.journal.append(append).await.unwrap();
}

async fn listed(served: &Served, query: &str) -> (Vec<String>, Option<String>) {
    let reply = get(served.address, &format!("/v1/tasks?{query}")).await;
    assert_eq!(reply.status, 200, "{query}: {reply:?}");
    let page = reply.json();
    let tasks = page["tasks"].as_array().unwrap().iter();
    let tasks = tasks.map(|task| task["task_id"].as_str().unwrap().to_owned()).collect();
    (tasks, page["next_cursor"].as_str().map(str::to_owned))
}

async fn world() -> Served {
    let served = Served::new().await;
    create(&served, 1, "lead", None, "a", TaskStatus::Completed).await;
    create(&served, 2, "dev", Some(1), "b", TaskStatus::Failed).await;
    create(&served, 3, "lead", None, "b", TaskStatus::Running).await;
    served
        .orchestrator
        .record("did it", json!(null), IdempotencyKey("order".to_owned()))
        .await
        .unwrap();
    create(&served, 4, "lead", None, "a", TaskStatus::Failed).await;
    served
}

#[tokio::test]
async fn tasks_are_listed_by_what_is_asked_of_them() {
    let served = world().await;
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
        let (tasks, next) = listed(&served, query).await;
        assert_eq!(
            (tasks, next),
            (expected.iter().map(|&it| it.to_owned()).collect(), None),
            "{query}"
        );
    }
    // What is kept of orders is for those who want to see all.
    assert_eq!(listed(&served, "all=true").await.0.len(), 5);
    served.ended().await;
}

#[tokio::test]
async fn a_list_goes_on_where_it_ended_whatever_is_added() {
    let served = world().await;
    let (first, next) = listed(&served, "limit=2").await;
    assert_eq!(first, ["t4", "t3"]);
    create(&served, 5, "lead", None, "a", TaskStatus::Running).await;
    let (second, next) = listed(&served, &format!("limit=2&cursor={}", next.unwrap())).await;
    assert_eq!((second, next), (vec!["t2".to_owned(), "t1".to_owned()], None));
    let (failed, next) = listed(&served, "limit=1&status=failed").await;
    assert_eq!(failed, ["t4"]);
    let (failed, next) =
        listed(&served, &format!("limit=1&status=failed&cursor={}", next.unwrap())).await;
    assert_eq!((failed, next), (vec!["t2".to_owned()], None));
    served.ended().await;
}

#[tokio::test]
async fn a_list_that_makes_no_sense_is_refused() {
    let served = world().await;
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
        let reply = get(served.address, &format!("/v1/tasks?{query}")).await;
        assert_eq!((reply.status, reply.code().as_str()), (400, "INVALID_REQUEST"), "{query}");
    }
    served.ended().await;
}
