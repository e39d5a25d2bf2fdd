//! Money and time.

use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::{ModelRef, Price, PriceTable, TaskLimits, TaskStatus};
use antiphon_runtime::{LimitReached, NewTask, Orchestrator, OrchestratorError, RuntimeDeps};

use crate::world::{Counting, new_task, orchestrator, world};

const ENDLESS: &str = r#"
name = "test"
[[reply]]
step = [{ call = { name = "look", arguments = {} } }]
usage = { input_tokens = 1000, output_tokens = 1000 }
"#;

fn budget(nano_usd: u64) -> TaskLimits {
    TaskLimits { cost_nano_usd_max: NonZeroU64::new(nano_usd), ..TaskLimits::default() }
}

#[tokio::test]
async fn a_budget_is_kept() {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let price: Price = serde_json::from_str(r#"{"input":1.0,"output":4.0}"#).expect("a price");
    let model = ModelRef::parse("scripted/test").expect("a model");
    let prices: PriceTable = [(model, price)].into_iter().collect();
    let world = RuntimeDeps { prices: Arc::new(prices), ..world(journal, &tools, ENDLESS) };
    let orchestrator = Orchestrator::new(world);
    // A turn costs half a cent: the third is one too many.
    let task = NewTask { limits: budget(12_000_000), ..new_task("go") };
    let task_id = orchestrator.invoke(task).await.expect("accepted").task_id;
    let state = orchestrator.wait(&task_id).await.expect("an end");
    assert_eq!((state.status, state.turns), (TaskStatus::Failed, 3));
    let detail = state.detail.expect("a reason");
    assert_eq!(detail["code"], "limit_reached");
    assert_eq!(detail["limit"]["limit"], "cost");
}

#[tokio::test]
async fn a_budget_for_a_model_without_a_price_is_refused() {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let orchestrator = orchestrator(journal, &tools, ENDLESS);
    let refused = orchestrator.invoke(NewTask { limits: budget(1), ..new_task("go") }).await;
    let model = "scripted/test".to_owned();
    assert_eq!(refused, Err(OrchestratorError::Limit(LimitReached::PriceUnknown { model })));
}

#[tokio::test]
async fn time_runs_out_also_in_the_middle_of_a_call_or_an_answer() {
    let hangs =
        "name = \"test\"\n[[reply]]\nstep = [{ call = { name = \"hang\", arguments = {} } }]\n";
    let stalls = "name = \"test\"\n[[reply]]\nstep = [{ text = \"Wait\" }, { stall = true }]\n";
    for script in [hangs, stalls] {
        let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
        let orchestrator = orchestrator(journal, &tools, script);
        let limits = TaskLimits { wall_clock_s_max: NonZeroU32::new(1), ..TaskLimits::default() };
        let task = NewTask { limits, ..new_task("go") };
        let task_id = orchestrator.invoke(task).await.expect("accepted").task_id;
        let state = orchestrator.wait(&task_id).await.expect("an end");
        assert_eq!(state.status, TaskStatus::Failed);
        assert_eq!(state.detail.expect("a reason")["limit"]["limit"], "wall_clock");
    }
}
