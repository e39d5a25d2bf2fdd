//! What is ordered here is done there.

use antiphon_core::{EventBody, StatusChanged, TaskStatus, WaitingFor};

use crate::local::{LocalSide, worked};
use crate::peer_server::PeerServer;

#[tokio::test]
async fn a_task_that_is_canceled_here_has_ended_there_before_anybody_returns() {
    let (there, here) = (PeerServer::new().await, LocalSide::new("hang").await);
    let url = there.url();
    let canceling = async {
        here.until("tool_started").await;
        here.cancel.cancel();
    };
    let (ran, ()) = tokio::join!(here.run(&url), canceling);
    ran.unwrap();
    let theirs = there.orchestrator.task(&there.task().await).await.unwrap();
    assert_eq!(theirs.status, TaskStatus::Canceled);
    let relayed = here.relayed().await;
    assert_eq!(relayed, worked(&there).await);
    assert_eq!(relayed.last(), Some(&StatusChanged::new(TaskStatus::Canceled).into()));
    there.end().await;
}

#[tokio::test]
async fn a_task_that_was_canceled_before_anybody_followed_it_is_canceled_there() {
    let (there, here) = (PeerServer::new().await, LocalSide::new("hang").await);
    here.cancel.cancel();
    here.run(&there.url()).await.unwrap();
    let ended = StatusChanged::new(TaskStatus::Canceled).into();
    assert_eq!(here.relayed().await.last(), Some(&ended));
    assert_eq!(worked(&there).await.last(), Some(&ended));
    there.end().await;
}

#[tokio::test]
async fn a_cancel_that_comes_too_late_changes_nothing() {
    let (there, here) = (PeerServer::new().await, LocalSide::new("hi").await);
    let url = there.url();
    let canceling = async {
        while !there.journal_ended().await {
            tokio::task::yield_now().await;
        }
        here.cancel.cancel();
    };
    let (ran, ()) = tokio::join!(here.run(&url), canceling);
    ran.unwrap();
    assert_eq!(here.relayed().await, worked(&there).await);
    there.end().await;
}

#[tokio::test]
async fn a_task_that_ended_here_for_another_reason_is_ended_there() {
    let (there, here) = (PeerServer::new().await, LocalSide::new("act").await);
    let url = there.url();
    tokio::select! {
        ran = here.run(&url) => panic!("it waits for an answer there: {ran:?}"),
        () = async { here.until("relayed").await; there.until("approval_requested").await } => {}
    }
    here.say(StatusChanged::new(TaskStatus::Failed)).await;
    here.run(&url).await.unwrap();
    let theirs = there.orchestrator.task(&there.task().await).await.unwrap();
    assert_eq!(theirs.status, TaskStatus::Canceled);
    there.end().await;
}

#[tokio::test]
async fn a_task_that_is_paused_and_resumed_here_is_paused_and_resumed_there() {
    let (there, here) = (PeerServer::new().await, LocalSide::new("act").await);
    let url = there.url();
    tokio::select! {
        ran = here.run(&url) => panic!("it waits for an answer there: {ran:?}"),
        () = async { here.until("relayed").await; there.until("approval_requested").await } => {}
    }
    let paused = StatusChanged {
        waiting_for: Some(WaitingFor::Resume),
        ..StatusChanged::new(TaskStatus::InputRequired)
    };
    here.say(paused.clone()).await;
    here.run(&url).await.unwrap();
    let waits = |events: &[EventBody]| {
        let mut changes = events.iter().filter_map(|body| {
            let EventBody::StatusChanged(change) = body else { return None };
            Some(change.waiting_for)
        });
        changes.next_back().unwrap()
    };
    assert_eq!(waits(&worked(&there).await), Some(WaitingFor::Resume));
    here.say(StatusChanged::new(TaskStatus::Running)).await;
    tokio::select! {
        ran = here.run(&url) => panic!("it waits for an answer there: {ran:?}"),
        () = async {
            while waits(&worked(&there).await) != Some(WaitingFor::Approval) {
                tokio::task::yield_now().await;
            }
        } => {}
    }
    here.cancel.cancel();
    here.run(&url).await.unwrap();
    there.end().await;
}

impl PeerServer {
    async fn journal_ended(&self) -> bool {
        let all = antiphon_core::port::TaskQuery {
            which: antiphon_core::port::TaskSelector::All,
            limit: std::num::NonZeroUsize::MIN,
        };
        let tasks = self.orchestrator.tasks(all).await.unwrap();
        tasks.first().is_some_and(|task| task.status.is_terminal())
    }
}
