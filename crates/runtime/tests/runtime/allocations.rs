//! How often a step of a task and a task with one answer allocate, with a journal in memory and a scripted model.

use std::sync::Arc;

use allocation_counter::measure;
use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::{ModelRef, Provider, RawJson, TaskStatus};
use antiphon_runtime::{Models, Orchestrator, RuntimeDeps};
use antiphon_scripted::{Script, ScriptedProvider};
use tokio::runtime::Builder;

use crate::world::{Counting, new_task, world};

/// A model whose script is parsed once.
struct Parsed(ScriptedProvider);

impl Models for Parsed {
    fn provider(
        &self,
        _: &ModelRef,
        _: &[ModelRef],
        _: Option<&RawJson>,
    ) -> Result<Arc<dyn Provider>, String> {
        Ok(Arc::new(self.0.clone()))
    }

    fn window_tokens(&self, _: &ModelRef) -> Option<u64> {
        None
    }
}

/// Allocations of a task with that many steps and an answer. Everything runs on one thread.
fn allocations(steps: u64) -> u64 {
    let script = format!(
        "name = \"test\"\n[[reply]]\nwhen = {{ turn = {steps} }}\nstep = [{{ text = \"Done.\" }}]\n\
         [[reply]]\nstep = [{{ call = {{ name = \"look\", arguments = {{}} }} }}]\n"
    );
    let provider = ScriptedProvider::new(Script::parse(&script).expect("a script"));
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let tools = Arc::new(Counting::default());
    let journal = Arc::new(MemoryJournal::new());
    let deps =
        RuntimeDeps { models: Arc::new(Parsed(provider)), ..world(journal, &tools, &script) };
    let orchestrator = Orchestrator::new(deps);
    let run = || {
        runtime.block_on(async {
            let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
            orchestrator.wait(&task_id).await.expect("an end")
        })
    };
    // The first task allocates what every task needs.
    assert_eq!(run().status, TaskStatus::Completed);
    let mut ended = None;
    let counted = measure(|| ended = Some(run().status));
    assert_eq!(ended, Some(TaskStatus::Completed));
    counted.count_total
}

#[test]
fn a_task_with_one_answer_allocates_little() {
    let one = allocations(0);
    assert!(one <= 1_500, "{one} allocations");
}

#[test]
fn a_step_allocates_little_and_no_more_after_many_steps() {
    let (few, many, more) = (allocations(10), allocations(60), allocations(260));
    let (early, late) = ((many - few) / 50, (more - many) / 200);
    assert!(early <= 1_000, "{early} allocations for a step");
    assert!(late <= early + early / 3, "{early} allocations for a step, {late} after many steps");
}
