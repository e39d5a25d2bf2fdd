//! Commands to the local task reach the remote one.

use antiphon_core::{EventBody, StatusChanged, TaskStatus, WaitingFor};

use crate::local::{LocalSide, worked};
use crate::peer_server::PeerServer;

#[tokio::test]
async fn a_task_that_is_canceled_here_has_ended_there_before_the_runner_returns() {
    let (peer, local) = (PeerServer::new().await, LocalSide::new("hang").await);
    let url = peer.url();
    let canceling = async {
        local.until("tool_started").await;
        local.cancel.cancel();
    };
    let (ran, ()) = tokio::join!(local.run(&url), canceling);
    ran.unwrap();
    let remote = peer.orchestrator.task(&peer.task().await).await.unwrap();
    assert_eq!(remote.status, TaskStatus::Canceled);
    let relayed = local.relayed().await;
    assert_eq!(relayed, worked(&peer).await);
    assert_eq!(relayed.last(), Some(&StatusChanged::new(TaskStatus::Canceled).into()));
    peer.end().await;
}

#[tokio::test]
async fn a_task_that_was_canceled_before_the_runner_followed_it_is_canceled_there() {
    let (peer, local) = (PeerServer::new().await, LocalSide::new("hang").await);
    local.cancel.cancel();
    local.run(&peer.url()).await.unwrap();
    let ended = StatusChanged::new(TaskStatus::Canceled).into();
    assert_eq!(local.relayed().await.last(), Some(&ended));
    assert_eq!(worked(&peer).await.last(), Some(&ended));
    peer.end().await;
}

#[tokio::test]
async fn a_cancel_that_comes_too_late_changes_nothing() {
    let (peer, local) = (PeerServer::new().await, LocalSide::new("hi").await);
    let url = peer.url();
    let canceling = async {
        while !peer.journal_ended().await {
            tokio::task::yield_now().await;
        }
        local.cancel.cancel();
    };
    let (ran, ()) = tokio::join!(local.run(&url), canceling);
    ran.unwrap();
    assert_eq!(local.relayed().await, worked(&peer).await);
    peer.end().await;
}

#[tokio::test]
async fn a_task_that_ended_here_for_another_reason_is_ended_there() {
    let (peer, local) = (PeerServer::new().await, LocalSide::new("act").await);
    let url = peer.url();
    tokio::select! {
        ran = local.run(&url) => panic!("it waits for an answer there: {ran:?}"),
        () = async { local.until("relayed").await; peer.until("approval_requested").await } => {}
    }
    local.say(StatusChanged::new(TaskStatus::Failed)).await;
    local.run(&url).await.unwrap();
    let remote = peer.orchestrator.task(&peer.task().await).await.unwrap();
    assert_eq!(remote.status, TaskStatus::Canceled);
    peer.end().await;
}

#[tokio::test]
async fn a_task_that_is_paused_and_resumed_here_is_paused_and_resumed_there() {
    let (peer, local) = (PeerServer::new().await, LocalSide::new("act").await);
    let url = peer.url();
    tokio::select! {
        ran = local.run(&url) => panic!("it waits for an answer there: {ran:?}"),
        () = async { local.until("relayed").await; peer.until("approval_requested").await } => {}
    }
    let paused = StatusChanged {
        waiting_for: Some(WaitingFor::Resume),
        ..StatusChanged::new(TaskStatus::InputRequired)
    };
    local.say(paused.clone()).await;
    local.run(&url).await.unwrap();
    let waits = |events: &[EventBody]| {
        let mut changes = events.iter().filter_map(|body| {
            let EventBody::StatusChanged(change) = body else { return None };
            Some(change.waiting_for)
        });
        changes.next_back().unwrap()
    };
    assert_eq!(waits(&worked(&peer).await), Some(WaitingFor::Resume));
    local.say(StatusChanged::new(TaskStatus::Running)).await;
    tokio::select! {
        ran = local.run(&url) => panic!("it waits for an answer there: {ran:?}"),
        () = async {
            while waits(&worked(&peer).await) != Some(WaitingFor::Approval) {
                tokio::task::yield_now().await;
            }
        } => {}
    }
    local.cancel.cancel();
    local.run(&url).await.unwrap();
    peer.end().await;
}

#[tokio::test]
async fn an_interrupt_here_ends_the_running_call_there_and_what_it_left_is_recorded_here() {
    let (peer, local) = (PeerServer::new().await, LocalSide::new("hang").await);
    let url = peer.url();
    let interrupting = async {
        local.until("tool_started").await;
        local.interrupt.cancel();
    };
    let (ran, ()) = tokio::join!(local.run(&url), interrupting);
    ran.unwrap();
    let remote = peer.orchestrator.task(&peer.task().await).await.unwrap();
    assert_eq!((remote.status, remote.waiting_for), (TaskStatus::InputRequired, RESUME));
    let relayed = local.relayed().await;
    assert_eq!(relayed, worked(&peer).await);
    let Some(EventBody::StatusChanged(last)) = relayed.last() else { panic!("{relayed:?}") };
    assert_eq!(last.detail.as_ref().unwrap()["code"], "interrupted");
    peer.end().await;
}

#[tokio::test]
async fn a_task_that_was_interrupted_before_the_runner_followed_it_is_interrupted_there() {
    let (peer, local) = (PeerServer::new().await, LocalSide::new("hang").await);
    let url = peer.url();
    tokio::select! {
        ran = local.run(&url) => panic!("it hangs there: {ran:?}"),
        () = local.until("tool_started") => {}
    }
    local
        .say(StatusChanged {
            detail: Some(serde_json::json!({ "code": "interrupted", "error": "by a person" })),
            waiting_for: RESUME,
            ..StatusChanged::new(TaskStatus::InputRequired)
        })
        .await;
    local.run(&url).await.unwrap();
    let remote = peer.orchestrator.task(&peer.task().await).await.unwrap();
    assert_eq!((remote.status, remote.waiting_for), (TaskStatus::InputRequired, RESUME));
    assert_eq!(remote.detail.unwrap()["code"], "interrupted");
    peer.end().await;
}

const RESUME: Option<WaitingFor> = Some(WaitingFor::Resume);

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
