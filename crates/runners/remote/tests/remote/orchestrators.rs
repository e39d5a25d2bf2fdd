//! The whole of it: an orchestrator here, an orchestrator there.

use std::sync::Arc;
use std::time::Duration;

use antiphon_conformance::model::MemoryJournal;
use antiphon_core::port::{Clock, Journal, SystemClock};
use antiphon_core::{ModelRef, Position, RunnerConfig, TaskId, TaskStatus, UserMessage};
use antiphon_runtime::{NewTask, Orchestrator};
use serde_json::json;

use crate::local::{PERSISTENT, runner};
use crate::peer_server::{PeerServer, orchestrator};

const PATIENCE: Duration = Duration::from_secs(5);

fn here(journal: &Arc<MemoryJournal>, there: &PeerServer) -> Orchestrator {
    let loopback = Arc::new(runner(&there.url(), PERSISTENT));
    orchestrator(Arc::clone(journal) as Arc<dyn Journal>, vec![loopback])
}

fn task(text: &str) -> NewTask {
    let message = UserMessage::text(text, SystemClock.now());
    let model = ModelRef::parse("scripted/there").unwrap();
    let config = RunnerConfig { kind: "loopback".to_owned(), config: json!({"peer": "there"}) };
    NewTask { runner: Some(config), ..NewTask::new("tester", model, message) }
}

async fn until(orchestrator: &Orchestrator, task_id: &TaskId, kind: &str) {
    let mut events = orchestrator.follow(Some(task_id.clone()), Position(0));
    while events.next().await.unwrap().body.event_type() != kind {}
}

#[tokio::test]
async fn an_orchestrator_here_has_its_task_done_there() {
    let there = PeerServer::new().await;
    let journal = Arc::new(MemoryJournal::new());
    let here = here(&journal, &there);
    let task_id = here.invoke(task("laps")).await.unwrap();
    let state = here.wait(&task_id).await.unwrap();
    let (status, detail) = (state.status, state.detail.clone());
    assert_eq!((status, detail), (TaskStatus::Completed, Some(json!("Done with laps"))));
    assert_eq!(state.turns, 3);
    let theirs = there.orchestrator.task(&there.task().await).await.unwrap();
    assert_eq!(state.messages(), theirs.messages());
    here.shutdown(PATIENCE).await;
    there.end().await;
}

#[tokio::test]
async fn an_orchestrator_here_cancels_what_runs_there() {
    let there = PeerServer::new().await;
    let journal = Arc::new(MemoryJournal::new());
    let here = here(&journal, &there);
    let task_id = here.invoke(task("hang")).await.unwrap();
    until(&here, &task_id, "tool_started").await;
    here.cancel(&task_id).await.unwrap();
    let theirs = there.orchestrator.task(&there.task().await).await.unwrap();
    assert_eq!(theirs.status, TaskStatus::Canceled);
    assert_eq!(here.task(&task_id).await.unwrap().status, TaskStatus::Canceled);
    here.shutdown(PATIENCE).await;
    there.end().await;
}

#[tokio::test]
async fn an_orchestrator_that_is_started_again_goes_on_with_what_runs_there() {
    let there = PeerServer::new().await;
    let journal = Arc::new(MemoryJournal::new());
    let first = here(&journal, &there);
    let task_id = first.invoke(task("hang")).await.unwrap();
    until(&first, &task_id, "tool_started").await;
    assert!(first.shutdown(PATIENCE).await, "it comes to rest by itself");
    let theirs = there.task().await;
    assert_eq!(there.orchestrator.task(&theirs).await.unwrap().status, TaskStatus::Running);
    let second = here(&journal, &there);
    assert_eq!(second.recover().await.unwrap().begun, std::slice::from_ref(&task_id));
    there.orchestrator.cancel(&theirs).await.unwrap();
    let state = second.wait(&task_id).await.unwrap();
    assert_eq!(state.status, TaskStatus::Canceled, "as it ended there");
    let theirs = there.orchestrator.task(&theirs).await.unwrap();
    assert_eq!(state.messages(), theirs.messages());
    second.shutdown(PATIENCE).await;
    there.end().await;
}

#[tokio::test]
async fn a_task_that_nobody_there_can_take_fails_here_and_says_why() {
    let there = PeerServer::new().await;
    let journal = Arc::new(MemoryJournal::new());
    let here = here(&journal, &there);
    let config = RunnerConfig { kind: "loopback".to_owned(), config: json!({"peer": "nobody"}) };
    let task_id = here.invoke(NewTask { runner: Some(config), ..task("hi") }).await.unwrap();
    let state = here.wait(&task_id).await.unwrap();
    assert_eq!(state.status, TaskStatus::Failed);
    let detail = state.detail.unwrap().to_string();
    assert!(detail.contains("`nobody`, only there"), "{detail}");
    here.shutdown(PATIENCE).await;
    there.end().await;
}
