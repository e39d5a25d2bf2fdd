//! Calls of one answer that change something run side by side when the agent's file says so, else in order.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use antiphon_core::port::ToolContext;
use antiphon_core::{AgentDefinition, Effect, RawJson, Tool, ToolError, ToolExecutor, ToolResult};
use antiphon_runtime::{Orchestrator, RuntimeDeps};
use async_trait::async_trait;

use crate::team::{Roster, Team, agent, calls, results, says, script, step};
use crate::world::new_task;

/// `act` takes a second and keeps when it began and ended.
#[derive(Default)]
struct Slow(Mutex<Vec<String>>);

#[async_trait]
impl ToolExecutor for Slow {
    fn tools(&self) -> Vec<Arc<Tool>> {
        let parameters = RawJson::parse(r#"{"type":"object"}"#).expect("JSON");
        vec![Arc::new(Tool { name: "act".to_owned(), description: "act".to_owned(), parameters })]
    }

    fn effect(&self, tool: &str) -> Option<Effect> {
        (tool == "act").then_some(Effect::SideEffect)
    }

    async fn execute(
        &self,
        _: &str,
        arguments: &RawJson,
        _: ToolContext,
    ) -> Result<ToolResult, ToolError> {
        let note = |word: &str| {
            self.0.lock().expect("no panic").push(format!("{word} {arguments}"));
        };
        note("begin");
        tokio::time::sleep(Duration::from_secs(1)).await;
        note("end");
        Ok(ToolResult::text(format!("did {arguments}")))
    }
}

async fn acted(parallel_tools: Vec<String>, context: &str) -> (Vec<String>, Vec<String>) {
    let both = format!("{}, {}", step("act", r#"{"n":1}"#), step("act", r#"{"n":2}"#));
    let call = format!(r#"{{"agent":"worker","prompt":"do","context":"{context}"}}"#);
    let turn = usize::from(context == "shared");
    let team = Team::new(
        script(&[
            ("Be brief", 0, &calls(&call)),
            ("Be brief", 1, &says("so")),
            ("I am worker", turn, &both),
            ("I am worker", turn + 1, &says("done")),
        ]),
        Roster::default().with(AgentDefinition { parallel_tools, ..agent("worker") }),
    );
    let tools = Arc::new(Slow::default());
    let deps = RuntimeDeps { tools: tools.clone(), ..team.world() };
    let orchestrator = Orchestrator::new(deps);
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    orchestrator.wait(&task_id).await.expect("an end");
    let worker = team.tasks().await.last().expect("a task").task_id.clone();
    let state = orchestrator.task(&worker).await.expect("a task");
    let said = results(&state).into_iter().map(|(text, _)| text).collect();
    let noted = tools.0.lock().expect("no panic").clone();
    (noted, said)
}

#[tokio::test(start_paused = true)]
async fn calls_run_side_by_side_when_the_agent_says_so_and_keep_their_order() {
    for context in ["independent", "shared"] {
        let (noted, said) = acted(vec!["act".to_owned()], context).await;
        let (begun, ended) = noted.split_at(2);
        assert_eq!(begun, [r#"begin {"n":1}"#, r#"begin {"n":2}"#], "{context}");
        assert!(ended.iter().all(|note| note.starts_with("end")), "{noted:?}");
        let said = &said[said.len() - 2..];
        assert_eq!(said, [r#"did {"n":1}"#, r#"did {"n":2}"#], "{context}");
    }
}

#[tokio::test(start_paused = true)]
async fn calls_run_in_order_when_the_agent_does_not_say_so() {
    let (noted, _) = acted(Vec::new(), "independent").await;
    let in_order = [r#"begin {"n":1}"#, r#"end {"n":1}"#, r#"begin {"n":2}"#, r#"end {"n":2}"#];
    assert_eq!(noted, in_order);
}
