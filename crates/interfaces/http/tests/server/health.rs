//! Anybody may ask whether the server works, and is told the truth.

use std::sync::Arc;

use antiphon_conformance::model::{MemoryJournal, UnavailableJournal};
use antiphon_http::Limits;
use serde_json::json;

use crate::client::{get, post, say};
use crate::world::Served;

#[tokio::test]
async fn anybody_may_ask_whether_it_works() {
    let served = Served::new().await;
    let address = served.address;
    for (path, status) in
        [("/health", "healthy"), ("/health/ready", "ready"), ("/health/live", "alive")]
    {
        let reply = say(address, &format!("GET {path} HTTP/1.0\r\nhost: {address}\r\n\r\n")).await;
        assert_eq!((reply.status, &reply.json()["status"]), (200, &json!(status)), "{path}");
        assert!(reply.json()["timestamp"].as_str().unwrap().ends_with('Z'), "{}", reply.body);
    }
    served.ended().await;
}

#[tokio::test]
async fn without_its_journal_it_is_alive_and_does_not_work() {
    let journal = Arc::new(MemoryJournal::new());
    let served = Served::over(
        Arc::new(UnavailableJournal("the disk is gone".to_owned())),
        journal,
        Limits::default(),
    )
    .await;
    let address = served.address;
    assert_eq!(get(address, "/health/live").await.status, 200);
    for path in ["/health", "/health/ready"] {
        let reply = get(address, path).await;
        assert_eq!((reply.status, &reply.json()["status"]), (503, &json!("unhealthy")));
    }
    let reply = post(address, "/v1/tasks", &json!({"message": "hi"})).await;
    assert_eq!((reply.status, reply.code().as_str()), (503, "SERVICE_UNAVAILABLE"));
    assert!(reply.head.contains("retry-after: 1"), "{reply:?}");
    let reply = post(address, "/v1/agents/reviewer/inbox", &json!({"message": "hi"})).await;
    assert_eq!((reply.status, reply.code().as_str()), (503, "SERVICE_UNAVAILABLE"));
    for path in ["/v1/inbox", "/v1/agents/status"] {
        assert_eq!(get(address, path).await.code(), "SERVICE_UNAVAILABLE", "{path}");
    }
    served.ended().await;
}
