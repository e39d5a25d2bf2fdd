//! Two real orchestrators: one here, one at the peer.

use std::sync::Arc;
use std::time::Duration;

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::port::{Clock, Journal, SystemClock};
use antiphon_core::{
    ModelRef, Position, RunnerConfig, TaskId, TaskStatus, UserMessage, WaitingFor,
};
use antiphon_runtime::{NewTask, Orchestrator};
use serde_json::json;

use crate::local::{PERSISTENT, runner};
use crate::peer_server::{PeerServer, orchestrator};

pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

fn local(journal: &Arc<MemoryJournal>, peer: &PeerServer) -> Orchestrator {
    let loopback = Arc::new(runner(&peer.url(), PERSISTENT));
    orchestrator(Arc::clone(journal) as Arc<dyn Journal>, vec![loopback])
}

pub(crate) fn task(text: &str) -> NewTask {
    let message = UserMessage::text(text, SystemClock.now());
    let model = ModelRef::parse("scripted/there").unwrap();
    let config = RunnerConfig { kind: "loopback".to_owned(), config: json!({"peer": "there"}) };
    NewTask { runner: Some(config), ..NewTask::new("tester", model, message) }
}

pub(crate) async fn until(orchestrator: &Orchestrator, task_id: &TaskId, kind: &str) {
    let mut events = orchestrator.follow(Some(task_id.clone()), Position(0));
    while events.next().await.unwrap().body.event_type() != kind {}
}

#[tokio::test]
async fn an_orchestrator_here_has_its_task_done_there() {
    let peer = PeerServer::new().await;
    let journal = Arc::new(MemoryJournal::new());
    let local = local(&journal, &peer);
    let task_id = local.invoke(task("steps")).await.unwrap().task_id;
    let state = local.wait(&task_id).await.unwrap();
    let (status, detail) = (state.status, state.detail.clone());
    assert_eq!((status, detail), (TaskStatus::Completed, Some(json!("Done with steps"))));
    assert_eq!(state.turns, 3);
    let remote = peer.orchestrator.task(&peer.task().await).await.unwrap();
    assert_eq!(state.messages(), remote.messages());
    local.shutdown(PATIENCE).await;
    peer.end().await;
}

#[tokio::test]
async fn an_orchestrator_here_cancels_what_runs_there() {
    let peer = PeerServer::new().await;
    let journal = Arc::new(MemoryJournal::new());
    let local = local(&journal, &peer);
    let task_id = local.invoke(task("hang")).await.unwrap().task_id;
    until(&local, &task_id, "tool_started").await;
    local.cancel(&task_id).await.unwrap();
    let remote = peer.orchestrator.task(&peer.task().await).await.unwrap();
    assert_eq!(remote.status, TaskStatus::Canceled);
    assert_eq!(local.task(&task_id).await.unwrap().status, TaskStatus::Canceled);
    local.shutdown(PATIENCE).await;
    peer.end().await;
}

#[tokio::test]
async fn an_orchestrator_that_restarts_follows_what_still_runs_at_the_peer() {
    let peer = PeerServer::new().await;
    let journal = Arc::new(MemoryJournal::new());
    let first = local(&journal, &peer);
    let task_id = first.invoke(task("hang")).await.unwrap().task_id;
    until(&first, &task_id, "tool_started").await;
    assert!(first.shutdown(PATIENCE).await, "it shuts down in time");
    let remote = peer.task().await;
    assert_eq!(peer.orchestrator.task(&remote).await.unwrap().status, TaskStatus::Running);
    let second = local(&journal, &peer);
    assert_eq!(second.recover().await.unwrap().begun, std::slice::from_ref(&task_id));
    peer.orchestrator.cancel(&remote).await.unwrap();
    let state = second.wait(&task_id).await.unwrap();
    assert_eq!(state.status, TaskStatus::Canceled, "as it ended there");
    let remote = peer.orchestrator.task(&remote).await.unwrap();
    assert_eq!(state.messages(), remote.messages());
    second.shutdown(PATIENCE).await;
    peer.end().await;
}

#[tokio::test]
async fn a_task_for_an_unknown_peer_fails_with_the_reason() {
    let peer = PeerServer::new().await;
    let journal = Arc::new(MemoryJournal::new());
    let local = local(&journal, &peer);
    let config = RunnerConfig { kind: "loopback".to_owned(), config: json!({"peer": "nobody"}) };
    let task_id =
        local.invoke(NewTask { runner: Some(config), ..task("hi") }).await.unwrap().task_id;
    let state = local.wait(&task_id).await.unwrap();
    assert_eq!(state.status, TaskStatus::Failed);
    let detail = state.detail.unwrap().to_string();
    assert!(detail.contains("`nobody`, only there"), "{detail}");
    local.shutdown(PATIENCE).await;
    peer.end().await;
}

/// Returns when a task at the peer waits for this.
async fn until_it_waits(peer: &PeerServer, remote: &TaskId, waiting_for: Option<WaitingFor>) {
    let waits = async {
        while peer.orchestrator.task(remote).await.unwrap().waiting_for != waiting_for {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, waits).await.unwrap();
}

#[tokio::test]
async fn a_pause_and_a_resume_here_reach_a_peer_that_tells_nothing() {
    let peer = PeerServer::new().await;
    let journal = Arc::new(MemoryJournal::new());
    let local = local(&journal, &peer);
    let task_id = local.invoke(task("hang")).await.unwrap().task_id;
    until(&local, &task_id, "tool_started").await;
    let remote = peer.task().await;
    local.pause(&task_id).await.unwrap();
    until_it_waits(&peer, &remote, Some(WaitingFor::Resume)).await;
    local.resume(&task_id).await.unwrap();
    until_it_waits(&peer, &remote, None).await;
    local.cancel(&task_id).await.unwrap();
    local.shutdown(PATIENCE).await;
    peer.end().await;
}
