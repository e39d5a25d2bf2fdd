//! Health checks need no token, and report the true state.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use antiphon_conformance::reference::{
    DelegatingJournal, JournalHooks, MemoryJournal, UnavailableJournal,
};
use antiphon_core::port::{Append, AppendFault, Appended, Journal, JournalError};
use antiphon_interface_transport::ServerLimits;
use async_trait::async_trait;
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
        ServerLimits::default(),
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

/// A journal that can be read, and takes no events while its disk is full.
struct FullDisk {
    journal: Arc<MemoryJournal>,
    is_full: AtomicBool,
    is_replaced: AtomicBool,
}

#[async_trait]
impl JournalHooks for FullDisk {
    fn inner(&self) -> &dyn Journal {
        &*self.journal
    }

    async fn append(&self, append: Append) -> Result<Appended, JournalError> {
        if self.is_full.load(Ordering::SeqCst) {
            return Err(JournalError::Unavailable { reason: "the disk is full".to_owned() });
        }
        self.inner().append(append).await
    }

    async fn check_append(&self) -> Result<(), AppendFault> {
        let reason = "/secret/path is gone".to_owned();
        if self.is_replaced.load(Ordering::SeqCst) {
            return Err(AppendFault::Replaced { reason });
        }
        if self.is_full.load(Ordering::SeqCst) {
            return Err(AppendFault::Unavailable { reason });
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_server_whose_journal_takes_no_events_is_unhealthy_until_it_does() {
    let journal = Arc::new(MemoryJournal::new());
    let disk = Arc::new(DelegatingJournal(FullDisk {
        journal: Arc::clone(&journal),
        is_full: AtomicBool::new(false),
        is_replaced: AtomicBool::new(false),
    }));
    let used = Arc::clone(&disk) as Arc<dyn Journal>;
    let server = TestServer::over(used, journal, ServerLimits::default()).await;
    let address = server.address;
    assert_eq!(get(address, "/health/ready").await.status, 200);
    disk.is_full.store(true, Ordering::SeqCst);
    for path in ["/health", "/health/ready"] {
        let reply = get(address, path).await;
        assert_eq!((reply.status, &reply.json()["status"]), (503, &json!("unhealthy")));
        assert_eq!(reply.json()["problems"], json!(["journal_unavailable"]));
        assert!(!reply.body.contains("secret"), "{}", reply.body);
    }
    assert_eq!(get(address, "/health/live").await.status, 200);
    let refused = post(address, "/v1/tasks", &json!({"message": "hi"})).await;
    assert_eq!((refused.status, &refused.json()["details"]["cause"]), (503, &json!("journal")));
    assert!(refused.head.contains("retry-after: "), "{refused:?}");
    disk.is_full.store(false, Ordering::SeqCst);
    assert_eq!(get(address, "/health").await.status, 200);
    disk.is_replaced.store(true, Ordering::SeqCst);
    let reply = get(address, "/health").await;
    assert_eq!((reply.status, &reply.json()["problems"]), (503, &json!(["journal_replaced"])));
    disk.is_replaced.store(false, Ordering::SeqCst);
    server.ended().await;
}

#[tokio::test]
async fn a_server_that_drains_is_not_ready_and_refuses_new_work() {
    let server = TestServer::new().await;
    let address = server.address;
    assert!(server.orchestrator.drain(std::time::Duration::from_secs(5)).await);
    let reply = get(address, "/health/ready").await;
    assert_eq!((reply.status, &reply.json()["problems"]), (503, &json!(["draining"])));
    let refused = post(address, "/v1/tasks", &json!({"message": "hi"})).await;
    assert_eq!((refused.status, &refused.json()["details"]["cause"]), (503, &json!("stopping")));
    assert!(refused.head.contains("retry-after: 5"), "{refused:?}");
    assert_eq!(get(address, "/v1/tasks").await.status, 200, "what is known can be read");
    server.ended().await;
}
