//! A stop that drains: running tools finish and are recorded, nothing new begins.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::port::ToolContext;
use antiphon_core::{
    Effect, HandlingMode, Position, RawJson, TaskStatus, Tool, ToolError, ToolExecutor, ToolResult,
    UserMessage,
};
use antiphon_runtime::{Orchestrator, OrchestratorError, RuntimeDeps};
use async_trait::async_trait;

use crate::world::{Counting, events, new_task, world};

const CALLS: &str = r#"
name = "test"
[[reply]]
when = { turn = 0 }
step = [
    { call = { name = "slow", arguments = { n = 1 } } },
    { call = { name = "slow", arguments = { n = 2 } } },
]
[[reply]]
step = [{ text = "Done." }]
"#;

/// A tool that takes three seconds, unless it is canceled.
#[derive(Default)]
struct Slow {
    begun: AtomicUsize,
    done: AtomicUsize,
}

#[async_trait]
impl ToolExecutor for Slow {
    fn tools(&self) -> Vec<Arc<Tool>> {
        Vec::new()
    }

    fn effect(&self, _: &str) -> Option<Effect> {
        Some(Effect::SideEffect)
    }

    async fn execute(
        &self,
        _: &str,
        _: &RawJson,
        context: ToolContext,
    ) -> Result<ToolResult, ToolError> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(3)) => {}
            () = context.cancel => return Err(ToolError::Canceled),
        }
        self.done.fetch_add(1, Ordering::SeqCst);
        Ok(ToolResult::text("did it"))
    }
}

fn slow(journal: &Arc<MemoryJournal>, tools: &Arc<Slow>) -> Orchestrator {
    let deps = world(journal.clone(), &Arc::new(Counting::default()), CALLS);
    Orchestrator::new(RuntimeDeps { tools: tools.clone(), ..deps })
}

async fn started(orchestrator: &Orchestrator) {
    let mut follower = orchestrator.follow(None, Position(0));
    while follower.next().await.expect("an event").body.event_type() != "tool_started" {}
}

#[tokio::test(start_paused = true)]
async fn a_running_tool_finishes_and_the_next_is_left_to_the_next_process() {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Slow::default()));
    let first = slow(&journal, &tools);
    let task_id = first.invoke(new_task("go")).await.expect("accepted").task_id;
    started(&first).await;
    let began = tokio::time::Instant::now();
    assert!(first.drain(Duration::from_secs(10)).await, "all has stopped");
    assert!(began.elapsed() < Duration::from_secs(4), "it waits no longer than it must");
    assert!(first.shutdown(Duration::from_secs(5)).await);
    let count =
        |tools: &Slow| (tools.begun.load(Ordering::SeqCst), tools.done.load(Ordering::SeqCst));
    assert_eq!(count(&tools), (1, 1));
    assert!(format!("{:?}", events(&*journal).await).contains("did it"), "it is recorded");
    let second = slow(&journal, &tools);
    second.recover().await.expect("a list");
    let state = second.wait(&task_id).await.expect("an end");
    assert_eq!(state.status, TaskStatus::Completed);
    assert_eq!(count(&tools), (2, 2), "the first was not run twice");
    assert!(!format!("{:?}", state.messages()).contains("outcome unknown"));
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_takes_too_long_is_cut_off_as_after_a_kill() {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Slow::default()));
    let first = slow(&journal, &tools);
    let task_id = first.invoke(new_task("go")).await.expect("accepted").task_id;
    started(&first).await;
    assert!(!first.drain(Duration::from_secs(1)).await, "it still runs");
    assert!(first.shutdown(Duration::from_secs(5)).await);
    assert_eq!(tools.done.load(Ordering::SeqCst), 0);
    let second = slow(&journal, &tools);
    second.recover().await.expect("a list");
    let state = second.wait(&task_id).await.expect("an end");
    assert!(format!("{:?}", state.messages()).contains("outcome unknown"));
    assert_eq!(tools.begun.load(Ordering::SeqCst), 2, "it was not run again");
}

#[tokio::test(start_paused = true)]
async fn new_work_is_refused_and_messages_to_a_task_are_left_to_the_next_process() {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Slow::default()));
    let first = slow(&journal, &tools);
    let task_id = first.invoke(new_task("go")).await.expect("accepted").task_id;
    started(&first).await;
    assert!(!first.is_draining());
    let before = events(&*journal).await.len();
    assert!(!first.drain(Duration::ZERO).await);
    assert!(first.is_draining());
    let refused = Err(OrchestratorError::Stopping);
    assert_eq!(first.invoke(new_task("more")).await.map(drop), refused);
    assert_eq!(events(&*journal).await.len(), before, "nothing was recorded");
    assert_eq!(first.task(&task_id).await.expect("a task").status, TaskStatus::Running);
    // A person that steers notices nothing of it.
    let said = UserMessage::text("and this", chrono::DateTime::UNIX_EPOCH);
    first.send(&task_id, said, HandlingMode::Queue).await.expect("recorded");
    first.resume(&task_id).await.expect("recorded");
    first.shutdown(Duration::from_secs(5)).await;
    let second = slow(&journal, &tools);
    second.recover().await.expect("a list");
    let state = second.wait(&task_id).await.expect("an end");
    assert!(format!("{:?}", state.messages()).contains("and this"), "the model reads it");
}
