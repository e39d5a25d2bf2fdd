//! A client that does not wait: what was begun for it is done to its end.

use std::sync::Arc;
use std::time::Duration;

use antiphon_conformance::reference::{DelegatingJournal, JournalHooks, MemoryJournal};
use antiphon_core::port::{Append, Appended, Journal, JournalError};
use antiphon_core::{EventBody, Position};
use antiphon_interface_transport::ServerLimits;
use async_trait::async_trait;
use serde_json::json;
use tokio::sync::Semaphore;

use crate::client::post_as;
use crate::world::TestServer;

/// A journal that takes as much as it is let.
struct Slow {
    journal: Arc<MemoryJournal>,
    let_in: Semaphore,
}

#[async_trait]
impl JournalHooks for Slow {
    fn inner(&self) -> &dyn Journal {
        &*self.journal
    }

    async fn append(&self, append: Append) -> Result<Appended, JournalError> {
        self.let_in.acquire().await.unwrap().forget();
        self.inner().append(append).await
    }
}

#[tokio::test]
async fn all_tasks_of_an_invocation_are_created_also_when_the_client_disconnects() {
    let journal = Arc::new(MemoryJournal::new());
    let slow = Arc::new(DelegatingJournal(Slow {
        journal: Arc::clone(&journal),
        let_in: Semaphore::new(1),
    }));
    let limits =
        ServerLimits { answer_wait: Duration::from_millis(200), ..ServerLimits::default() };
    let used = Arc::clone(&slow) as Arc<dyn Journal>;
    let server = TestServer::over(used, Arc::clone(&journal), limits).await;
    let target = json!({"agent": {"type": "named", "agent_id": "reviewer"}, "message": "hi"});
    let body = json!({"targets": [target, target, target], "join": "detached"});
    let given_up = post_as(server.address, "once", "/v1/invocations", &body).await;
    assert_eq!(given_up.status, 503, "the second task waits: {given_up:?}");
    slow.let_in.add_permits(1000);
    let mut events = server.orchestrator.follow(None, Position(0));
    let mut made = Vec::new();
    while made.len() < 3 {
        let event = events.next().await.unwrap();
        if let EventBody::TaskCreated(created) = &event.body
            && created.agent == "reviewer"
        {
            made.push(event.task_id.clone());
        }
    }
    for task_id in &made {
        server.orchestrator.wait(task_id).await.unwrap();
    }
    server.ended().await;
}
