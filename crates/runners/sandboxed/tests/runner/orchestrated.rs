//! The runner under an orchestrator, as in the binary.

use std::sync::Arc;
use std::time::Duration;

use antiphon_core::port::{Journal, Runner};
use antiphon_core::{RunnerConfig, TaskStatus};
use antiphon_runtime::{NewTask, NoTools, Orchestrator, RuntimeDeps, TaskState};
use serde_json::json;

use crate::bench::{Bench, SOON, calls, ends, events, eventually, kill_worker, new_task, world};
use crate::completing::LAPS;

fn orchestrator(bench: &Bench) -> Orchestrator {
    let journal = Arc::clone(&bench.journal) as Arc<dyn Journal>;
    let world = world(journal, Arc::clone(&bench.provider), Arc::new(NoTools));
    let runners: Vec<Arc<dyn Runner>> = vec![Arc::clone(&bench.runner) as Arc<dyn Runner>];
    Orchestrator::new(RuntimeDeps { runners, ..world })
}

fn sandboxed(bench: &Bench) -> NewTask {
    let runner = RunnerConfig::new("sandbox").with_config(bench.config.clone());
    NewTask { runner: Some(runner), ..new_task("go") }
}

async fn ended(bench: &Bench) -> TaskState {
    let orchestrator = orchestrator(bench);
    let task_id = orchestrator.invoke(sandboxed(bench)).await.unwrap().task_id;
    let state = tokio::time::timeout(SOON, orchestrator.wait(&task_id)).await.unwrap().unwrap();
    orchestrator.shutdown(Duration::from_secs(1)).await;
    bench.assert_clean();
    state
}

#[tokio::test]
async fn a_task_is_done_in_a_worker() {
    let bench = Bench::new(LAPS);
    assert_eq!(ended(&bench).await.status, TaskStatus::Completed);
    assert_eq!(bench.lines("acts"), ["1", "2", "3"]);
    assert_eq!(ends(&events(&*bench.journal).await), [TaskStatus::Completed]);
}

#[tokio::test]
async fn a_cancel_reaches_the_worker() {
    let bench = Bench::new(&calls("hang", json!({ "on": "x" })));
    let orchestrator = orchestrator(&bench);
    let task_id = orchestrator.invoke(sandboxed(&bench)).await.unwrap().task_id;
    eventually("the tool runs", || bench.lines("hangs").len() == 1).await;
    orchestrator.cancel(&task_id).await.unwrap();
    bench.assert_clean();
    assert_eq!(ends(&events(&*bench.journal).await), [TaskStatus::Canceled]);
}

#[tokio::test]
async fn a_worker_that_is_killed_is_replaced() {
    let bench = Bench::new(&calls("hang", json!({ "on": "x" })));
    let kill = async {
        eventually("the tool runs", || bench.lines("hangs").len() == 1).await;
        assert!(kill_worker(&bench.token));
    };
    let (state, ()) = tokio::join!(ended(&bench), kill);
    assert_eq!(state.status, TaskStatus::Completed);
    let results = bench.results(&state.task_id).await;
    assert!(results.len() == 1 && results[0].0.contains("outcome unknown"), "{results:?}");
}
