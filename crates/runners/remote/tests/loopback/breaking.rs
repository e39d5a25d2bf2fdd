//! Connections break, either side is started again: nothing is left out, nothing comes twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use antiphon_conformance::model::{DelegatingJournal, JournalHooks, MemoryJournal};
use antiphon_core::port::{
    Append, Appended, ApprovalSelector, Journal, JournalError, Runner, RunnerError,
};
use antiphon_core::{Decision, TaskStatus};
use async_trait::async_trait;
use serde_json::json;

use crate::here::{Here, STUBBORN, runner, worked};
use crate::proxy::Proxy;
use crate::there::There;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_breaks_anywhere_again_and_again_changes_nothing() {
    let mut cuts = 0;
    for seed in 0..24 {
        let (there, here) = (There::new().await, Here::new("laps").await);
        let proxy = Proxy::new(there.address, seed, 3000).await;
        here.run(&format!("http://{}", proxy.address)).await.unwrap();
        assert_eq!(here.relayed().await, worked(&there).await, "seed {seed}");
        cuts += proxy.cuts.load(Ordering::SeqCst);
        there.end().await;
    }
    assert!(cuts > 24, "only {cuts} connections were cut");
}

#[tokio::test]
async fn a_cancel_crosses_over_connections_that_break() {
    for seed in 0..4 {
        let (there, here) = (There::new().await, Here::new("hang").await);
        let proxy = Proxy::new(there.address, seed, 3000).await;
        let url = format!("http://{}", proxy.address);
        let canceling = async {
            here.until("tool_started").await;
            here.cancel.cancel();
        };
        let (ran, ()) = tokio::join!(here.run(&url), canceling);
        ran.unwrap();
        assert_eq!(here.relayed().await, worked(&there).await, "seed {seed}");
        there.end().await;
    }
}

#[tokio::test]
async fn a_server_that_is_started_again_is_found_again() {
    let (there, here) = (There::new().await, Here::new("act").await);
    let url = there.url();
    let restarting = async {
        there.until("approval_requested").await;
        here.until("relayed").await;
        let (journal, address) = there.end().await;
        // Nobody is there for a while: the runner asks in vain.
        tokio::time::sleep(std::time::Duration::from_millis(30)).await;
        let there = There::again(journal, address).await;
        let asked = there.orchestrator.approvals(ApprovalSelector::Pending).await.unwrap();
        let id = asked[0].approval_id.clone();
        there.orchestrator.decide(&id, Decision::AllowTask, "a test", None).await.unwrap();
        there
    };
    let (ran, there) = tokio::join!(here.run(&url), restarting);
    ran.unwrap();
    let theirs = there.orchestrator.task(&there.task().await).await.unwrap();
    assert_eq!(theirs.status, TaskStatus::Completed);
    let ours = here.relayed().await;
    let theirs = worked(&there).await;
    assert_eq!(ours.last(), theirs.last());
    let kinds = |events: &[antiphon_core::EventBody]| {
        let kinds = events.iter().map(antiphon_core::EventBody::event_type);
        kinds.filter(|kind| !kind.starts_with("approval")).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&ours), kinds(&theirs));
    there.end().await;
}

#[tokio::test]
async fn whoever_comes_to_rest_goes_on_where_the_events_end() {
    let (there, here) = (There::new().await, Here::new("hang").await);
    let url = there.url();
    let resting = async {
        here.until("tool_started").await;
        here.rest.cancel();
    };
    let (ran, ()) = tokio::join!(here.run(&url), resting);
    ran.unwrap();
    let theirs = there.orchestrator.task(&there.task().await).await.unwrap();
    assert_eq!(theirs.status, TaskStatus::Running, "it goes on there");
    let here = Here { rest: tokio_util::sync::CancellationToken::new(), ..here };
    here.cancel.cancel();
    here.run(&url).await.unwrap();
    assert_eq!(here.relayed().await, worked(&there).await);
    there.end().await;
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
async fn whoever_dies_at_any_append_goes_on_where_the_events_end() {
    for wrote in [false, true] {
        let (there, here) = (There::new().await, Here::new("laps").await);
        let loopback = runner(&there.url(), STUBBORN);
        let mut died = 0;
        // One more append each time, so that it dies at every one of them.
        for last in 0.. {
            let inner = Arc::clone(&here.journal);
            let mortal =
                DelegatingJournal(Mortal { inner, last, wrote, appends: AtomicUsize::new(0) });
            let run = here.run_on(Arc::new(mortal), json!({"peer": "there"}));
            match loopback.run(run).await {
                Ok(()) => break,
                Err(RunnerError::Journal(JournalError::Unavailable { .. })) => died += 1,
                Err(other) => panic!("{other}"),
            }
            if here.events().await.last().unwrap().body.ends_task() {
                break;
            }
        }
        assert!(died > 0);
        assert_eq!(here.relayed().await, worked(&there).await, "wrote: {wrote}");
        there.end().await;
    }
}
