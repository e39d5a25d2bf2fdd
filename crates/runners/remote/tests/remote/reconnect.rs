//! Connections break, either side restarts: no event is missing and none is repeated.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use antiphon_conformance::reference::{DelegatingJournal, JournalHooks, MemoryJournal};
use antiphon_core::port::{
    Append, Appended, ApprovalSelector, Journal, JournalError, Runner, RunnerError,
};
use antiphon_core::{Decision, TaskStatus};
use antiphon_test_server::CuttingProxy;
use async_trait::async_trait;
use serde_json::json;

use crate::local::{LocalSide, PERSISTENT, runner, worked};
use crate::peer_server::PeerServer;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_breaks_anywhere_again_and_again_changes_nothing() {
    let mut cuts = 0;
    for seed in 0..24 {
        let (peer, local) = (PeerServer::new().await, LocalSide::new("steps").await);
        let proxy = CuttingProxy::new(peer.address, seed, 3000).await;
        local.run(&format!("http://{}", proxy.address)).await.unwrap();
        assert_eq!(local.relayed().await, worked(&peer).await, "seed {seed}");
        cuts += proxy.cuts.load(Ordering::SeqCst);
        peer.end().await;
    }
    assert!(cuts > 24, "only {cuts} connections were cut");
}

#[tokio::test]
async fn a_cancel_reaches_the_peer_over_connections_that_break() {
    for seed in 0..4 {
        let (peer, local) = (PeerServer::new().await, LocalSide::new("hang").await);
        let proxy = CuttingProxy::new(peer.address, seed, 3000).await;
        let url = format!("http://{}", proxy.address);
        let canceling = async {
            local.until("tool_started").await;
            local.cancel.cancel();
        };
        let (ran, ()) = tokio::join!(local.run(&url), canceling);
        ran.unwrap();
        assert_eq!(local.relayed().await, worked(&peer).await, "seed {seed}");
        peer.end().await;
    }
}

#[tokio::test]
async fn the_runner_reconnects_to_a_server_that_restarts() {
    let (peer, local) = (PeerServer::new().await, LocalSide::new("act").await);
    let url = peer.url();
    let restarting = async {
        peer.until("approval_requested").await;
        local.until("relayed").await;
        let (journal, address) = peer.end().await;
        // No server listens for a while: the runner retries.
        tokio::time::sleep(std::time::Duration::from_millis(30)).await;
        let peer = PeerServer::again(journal, address).await;
        let requested = peer.orchestrator.approvals(ApprovalSelector::Pending).await.unwrap();
        let id = requested[0].approval_id.clone();
        peer.orchestrator.decide(&id, Decision::AllowTask, "a test", None).await.unwrap();
        peer
    };
    let (ran, peer) = tokio::join!(local.run(&url), restarting);
    ran.unwrap();
    let remote = peer.orchestrator.task(&peer.task().await).await.unwrap();
    assert_eq!(remote.status, TaskStatus::Completed);
    let local_task = local.relayed().await;
    let remote = worked(&peer).await;
    assert_eq!(local_task.last(), remote.last());
    let kinds = |events: &[antiphon_core::EventBody]| {
        let kinds = events.iter().map(antiphon_core::EventBody::event_type);
        kinds.filter(|kind| !kind.starts_with("approval")).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&local_task), kinds(&remote));
    peer.end().await;
}

#[tokio::test]
async fn a_runner_that_was_shut_down_continues_after_the_last_event() {
    let (peer, local) = (PeerServer::new().await, LocalSide::new("hang").await);
    let url = peer.url();
    let resting = async {
        local.until("tool_started").await;
        local.rest.cancel();
    };
    let (ran, ()) = tokio::join!(local.run(&url), resting);
    ran.unwrap();
    let remote = peer.orchestrator.task(&peer.task().await).await.unwrap();
    assert_eq!(remote.status, TaskStatus::Running, "it goes on there");
    let local = LocalSide { rest: tokio_util::sync::CancellationToken::new(), ..local };
    local.cancel.cancel();
    local.run(&url).await.unwrap();
    assert_eq!(local.relayed().await, worked(&peer).await);
    peer.end().await;
}

/// A journal whose process dies at its `last`th append, before it wrote or after.
struct Mortal {
    inner: Arc<MemoryJournal>,
    last: usize,
    wrote: bool,
    appends: AtomicUsize,
}

#[async_trait]
impl JournalHooks for Mortal {
    fn inner(&self) -> &dyn Journal {
        &*self.inner
    }

    async fn append(&self, append: Append) -> Result<Appended, JournalError> {
        let dead = || JournalError::Unavailable { reason: "dead".to_owned() };
        let number = self.appends.fetch_add(1, Ordering::SeqCst);
        if number > self.last || (number == self.last && !self.wrote) {
            return Err(dead());
        }
        let appended = self.inner().append(append).await?;
        if number == self.last { Err(dead()) } else { Ok(appended) }
    }
}

#[tokio::test]
async fn a_runner_that_dies_at_any_append_continues_after_the_last_event() {
    for wrote in [false, true] {
        let (peer, local) = (PeerServer::new().await, LocalSide::new("steps").await);
        let loopback = runner(&peer.url(), PERSISTENT);
        let mut died = 0;
        // One more append each time, so that it dies at every one of them.
        for last in 0.. {
            let inner = Arc::clone(&local.journal);
            let mortal =
                DelegatingJournal(Mortal { inner, last, wrote, appends: AtomicUsize::new(0) });
            let run = local.run_on(Arc::new(mortal), json!({"peer": "there"}));
            match loopback.run(run).await {
                Ok(()) => break,
                Err(RunnerError::Journal(JournalError::Unavailable { .. })) => died += 1,
                Err(other) => panic!("{other}"),
            }
            if local.events().await.last().unwrap().body.ends_task() {
                break;
            }
        }
        assert!(died > 0);
        assert_eq!(local.relayed().await, worked(&peer).await, "wrote: {wrote}");
        peer.end().await;
    }
}
