//! The runner under an orchestrator, as in the binary.

use std::sync::Arc;
use std::time::Duration;

use antiphon_conformance::reference::ScenarioProvider;
use antiphon_core::port::{Provider, RandomIds, Runner, SystemClock};
use antiphon_core::{
    HandlingMode, ModelRef, PriceTable, RawJson, RunnerConfig, TaskStatus, UserMessage,
};
use antiphon_runtime::{
    Models, NewTask, NoTools, OpenGate, Orchestrator, OrchestratorSettings, RuntimeDeps,
};
use chrono::Utc;
use serde_json::json;
use tokio::time::timeout;

use crate::processes;
use crate::world::{LONG, World, script, shell};

/// A model that is never called.
pub(crate) struct NoModel;

impl Models for NoModel {
    fn provider(
        &self,
        _: &ModelRef,
        _: &[ModelRef],
        _: Option<&RawJson>,
    ) -> Result<Arc<dyn Provider>, String> {
        Ok(Arc::new(ScenarioProvider::new(&[])))
    }

    fn window_tokens(&self, _: &ModelRef) -> Option<u64> {
        None
    }
}

fn orchestrator(world: &World) -> Orchestrator {
    Orchestrator::new(RuntimeDeps {
        journal: Arc::clone(&world.journal),
        models: Arc::new(NoModel),
        tools: Arc::new(NoTools),
        gate: Arc::new(OpenGate),
        agents: None,
        runners: vec![Arc::clone(&world.runner) as Arc<dyn Runner>],
        prices: Arc::new(PriceTable::default()),
        clock: Arc::new(SystemClock),
        ids: Arc::new(RandomIds),
        settings: OrchestratorSettings::default(),
    })
}

pub(crate) fn task(text: &str) -> NewTask {
    let model = ModelRef::parse("nobody/nothing").unwrap();
    let runner = RunnerConfig::new("terminal").with_config(json!({ "profile": "test" }));
    let message = UserMessage::text(text, Utc::now());
    NewTask { runner: Some(runner), ..NewTask::new("tester", model, message) }
}

#[tokio::test]
async fn a_task_is_typed_in_and_so_is_what_is_sent_to_it() {
    let world = World::new(shell());
    let orchestrator = orchestrator(&world);
    let task_id = orchestrator.invoke(by_owner("echo first > said")).await.unwrap().task_id;
    for text in ["echo second >> said", "exit"] {
        let message = UserMessage::text(text, Utc::now());
        orchestrator.send(&task_id, message, HandlingMode::Queue).await.unwrap();
    }
    let state = timeout(LONG, orchestrator.wait(&task_id)).await.unwrap().unwrap();
    assert_eq!(state.status, TaskStatus::Completed, "{:?}", state.detail);
    let recorded = std::fs::read_to_string(world.root().join("said")).unwrap();
    assert_eq!(recorded, "first\nsecond\n");
    assert!(state.queue.is_empty());
    orchestrator.shutdown(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn a_cancel_from_a_door_reaches_the_program() {
    let world = World::new(script("echo go; sleep 8201 & sleep 8202"));
    let orchestrator = orchestrator(&world);
    let task_id = orchestrator.invoke(by_owner("")).await.unwrap().task_id;
    processes::are(2, "sleep 820").await;
    orchestrator.cancel(&task_id).await.unwrap();
    let state = timeout(LONG, orchestrator.wait(&task_id)).await.unwrap().unwrap();
    assert_eq!(state.status, TaskStatus::Canceled);
    processes::are(0, "sleep 820").await;
    orchestrator.shutdown(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn a_program_ends_with_the_orchestrator_and_its_task_says_so_afterwards() {
    let world = World::new(script("echo go; sleep 8301"));
    let first = orchestrator(&world);
    let task_id = first.invoke(by_owner("")).await.unwrap().task_id;
    processes::are(1, "sleep 8301").await;
    assert!(first.shutdown(Duration::from_secs(5)).await);
    assert_eq!(processes::with("sleep 8301"), Vec::<i32>::new());
    let second = orchestrator(&world);
    second.recover().await.unwrap();
    let state = timeout(LONG, second.wait(&task_id)).await.unwrap().unwrap();
    assert_eq!(state.status, TaskStatus::Failed);
    assert_eq!(state.detail.unwrap()["code"], "interrupted");
    second.shutdown(Duration::from_secs(1)).await;
}

fn by_owner(text: &str) -> NewTask {
    NewTask { provenance: antiphon_core::Provenance::Owner, ..task(text) }
}
