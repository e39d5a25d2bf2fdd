//! What stops is taken up again; what stands is known.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::port::{PieceSource, Provider, ToolContext};
use antiphon_core::{
    AgentState, Effect, ModelRef, RawJson, Request, TaskStatus, Tool, ToolError, ToolExecutor,
    ToolResult,
};
use antiphon_runtime::{
    Models, NewTask, Orchestrator, OrchestratorError, OrchestratorSettings, RuntimeDeps,
};
use antiphon_scripted::{Script, ScriptedProvider};
use async_trait::async_trait;

use crate::world::{Counting, new_task, orchestrator, world};

const CALLS: &str = r#"
name = "test"
[[reply]]
when = { tool_results = 1 }
step = [{ text = "Done." }]
[[reply]]
step = [{ call = { name = "odd", arguments = {} } }]
"#;

/// A tool that goes wrong the first few times: it panics, or it never returns.
struct Odd {
    times: usize,
    hangs: bool,
    called: AtomicUsize,
    released: AtomicUsize,
}

#[async_trait]
impl ToolExecutor for Odd {
    fn tools(&self) -> Vec<Arc<Tool>> {
        Vec::new()
    }

    fn effect(&self, _: &str) -> Option<Effect> {
        Some(Effect::ReadOnly)
    }

    async fn execute(&self, _: &str, _: &RawJson, _: ToolContext) -> Result<ToolResult, ToolError> {
        if self.called.fetch_add(1, Ordering::SeqCst) < self.times {
            assert!(self.hangs, "a fault in a tool");
            std::future::pending::<()>().await;
        }
        Ok(ToolResult::text("fine"))
    }

    async fn release(&self, _: &antiphon_core::TaskId) {
        self.released.fetch_add(1, Ordering::SeqCst);
    }
}

fn odd(times: usize, hangs: bool) -> (Arc<Odd>, Orchestrator) {
    let called = AtomicUsize::new(0);
    let odd = Arc::new(Odd { times, hangs, called, released: AtomicUsize::new(0) });
    let world = world(Arc::new(MemoryJournal::new()), &Arc::new(Counting::default()), CALLS);
    let settings =
        OrchestratorSettings { heartbeat_timeout: Duration::from_secs(60), ..world.settings };
    let world = RuntimeDeps { tools: odd.clone(), settings, ..world };
    (odd, Orchestrator::new(world))
}

#[tokio::test]
async fn a_panic_is_taken_up_again_a_few_times() {
    let (tool, orchestrator) = odd(3, false);
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    let state = orchestrator.wait(&task_id).await.expect("an end");
    assert_eq!(state.status, TaskStatus::Completed);
    assert_eq!(tool.called.load(Ordering::SeqCst), 4);
    assert_eq!(tool.released.load(Ordering::SeqCst), 1, "its tools release it");
}

#[tokio::test]
async fn a_fault_that_stays_is_told_and_the_task_can_be_resumed() {
    let (tool, orchestrator) = odd(6, false);
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    let why = orchestrator.wait(&task_id).await.expect_err("it gave up");
    assert_eq!(why, OrchestratorError::Panicked { task_id: task_id.clone() });
    assert_eq!(tool.called.load(Ordering::SeqCst), 6);
    orchestrator.resume(&task_id).await.expect("resumed");
    let state = orchestrator.wait(&task_id).await.expect("an end");
    assert_eq!(state.status, TaskStatus::Completed);
}

/// A model that never answers the first time it is asked.
struct Lost {
    requested: AtomicUsize,
    inner: ScriptedProvider,
}

impl Provider for Lost {
    fn open(&self, request: Request) -> PieceSource {
        if self.requested.fetch_add(1, Ordering::SeqCst) == 0 {
            return Box::pin(futures_util::stream::pending());
        }
        self.inner.open(request)
    }
}

struct OneModel(Arc<Lost>);

impl Models for OneModel {
    fn provider(
        &self,
        _: &ModelRef,
        _: &[ModelRef],
        _: Option<&RawJson>,
    ) -> Result<Arc<dyn Provider>, String> {
        Ok(Arc::clone(&self.0) as Arc<dyn Provider>)
    }

    fn window_tokens(&self, _: &ModelRef) -> Option<u64> {
        None
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_without_a_sign_of_life_is_taken_up_again() {
    let script = "name = \"test\"\n[[reply]]\nstep = [{ text = \"Here.\" }]\n";
    let inner = ScriptedProvider::new(Script::parse(script).expect("a script"));
    let model = Arc::new(Lost { requested: AtomicUsize::new(0), inner });
    let world = world(Arc::new(MemoryJournal::new()), &Arc::new(Counting::default()), script);
    let orchestrator =
        Orchestrator::new(RuntimeDeps { models: Arc::new(OneModel(model.clone())), ..world });
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    let state = orchestrator.wait(&task_id).await.expect("an end");
    assert_eq!(state.status, TaskStatus::Completed);
    assert_eq!(model.requested.load(Ordering::SeqCst), 2);
}

/// However long it takes: it has a limit of its own.
#[tokio::test(start_paused = true)]
async fn a_tool_may_be_quiet() {
    let (tool, orchestrator) = odd(1, true);
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    let hours = Duration::from_secs(7200);
    assert!(tokio::time::timeout(hours, orchestrator.wait(&task_id)).await.is_err());
    assert_eq!(tool.called.load(Ordering::SeqCst), 1, "it was not run again");
}

#[tokio::test]
async fn a_task_whose_model_is_out_of_reach_stays_as_it_is() {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let orchestrator = orchestrator(journal, &tools, CALLS);
    let route = Some(RawJson::parse("\"nowhere\"").expect("JSON"));
    let task_id =
        orchestrator.invoke(NewTask { route, ..new_task("go") }).await.expect("accepted").task_id;
    let why = orchestrator.wait(&task_id).await.expect_err("no model answers");
    let reason = "there is no way".to_owned();
    assert_eq!(why, OrchestratorError::NoModel { task_id: task_id.clone(), reason });
    let state = orchestrator.task(&task_id).await.expect("a task");
    assert_eq!(state.status, TaskStatus::Pending);
}

#[tokio::test]
async fn agents_stand_where_they_are_said_to() {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let hangs =
        "name = \"test\"\n[[reply]]\nstep = [{ call = { name = \"hang\", arguments = {} } }]\n";
    let ten = NonZeroUsize::new(10).expect("a number");
    let first = orchestrator(journal.clone(), &tools, hangs);
    let task_id = first.invoke(new_task("go")).await.expect("accepted").task_id;
    let mut follower = first.follow(None, antiphon_core::Position(0));
    while follower.next().await.expect("an event").body.event_type() != "tool_started" {}
    let agents = first.agents(ten).await.expect("a list");
    assert_eq!(agents.len(), 1);
    assert_eq!(agents[0].status.state, AgentState::ToolCall);
    assert_eq!(agents[0].status.messages_processed, 1);
    assert!(first.shutdown(Duration::from_secs(5)).await);
    // No process runs it now: it is idle, although the journal's last event says otherwise.
    let second = orchestrator(journal, &tools, hangs);
    let agents = second.agents(ten).await.expect("a list");
    assert_eq!((agents.len(), agents[0].status.state), (1, AgentState::Idle));
    second.cancel(&task_id).await.expect("canceled");
    assert!(second.agents(ten).await.expect("a list").is_empty());
}
