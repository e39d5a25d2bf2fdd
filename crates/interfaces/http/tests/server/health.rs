//! Health checks need no token, and report the true state.

use std::sync::Arc;

use antiphon_conformance::reference::{MemoryJournal, UnavailableJournal};
use antiphon_interface_transport::Limits;
use serde_json::json;

use crate::client::{get, post, say};
use crate::world::TestServer;

#[tokio::test]
async fn health_needs_no_credentials() {
    let server = TestServer::new().await;
    let address = server.address;
    for (path, status) in
        [("/health", "healthy"), ("/health/ready", "ready"), ("/health/live", "alive")]
    {
        let reply = say(address, &format!("GET {path} HTTP/1.0\r\nhost: {address}\r\n\r\n")).await;
        assert_eq!((reply.status, &reply.json()["status"]), (200, &json!(status)), "{path}");
        assert!(reply.json()["timestamp"].as_str().unwrap().ends_with('Z'), "{}", reply.body);
    }
    server.ended().await;
}

#[tokio::test]
async fn without_its_journal_the_server_is_alive_and_unhealthy() {
    let journal = Arc::new(MemoryJournal::new());
    let server = TestServer::over(
        Arc::new(UnavailableJournal("the disk is gone".to_owned())),
        journal,
        Limits::default(),
    )
    .await;
    let address = server.address;
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
    server.ended().await;
}
