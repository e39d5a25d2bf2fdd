//! A team: agents that can be called, and a runner that works on tasks elsewhere.

use std::sync::Arc;
use std::time::Duration;

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::port::{
    AgentList, Agents, Journal, PromptSource, RandomIds, Runner, RunnerError, RunnerTask,
    SingleTaskJournal, SystemClock, TaskQuery, TaskSelector,
};
use antiphon_core::{
    AgentDefinition, AgentName, CallableAgents, EventBody, Message, ModelRef, PriceTable, Provider,
    RawJson, Runtime, TaskId, TaskSummary, ToolExecutor,
};
use antiphon_runtime::{
    Dispatch, Models, OpenGate, Orchestrator, OrchestratorError, OrchestratorSettings, RuntimeDeps,
    TaskState,
};
use async_trait::async_trait;
use serde_json::Value;

use crate::world::{self, Counting};

/// Agents that can be called.
#[derive(Clone, Default)]
pub(crate) struct Roster(pub(crate) Vec<Arc<AgentDefinition>>);

impl Roster {
    pub(crate) fn with(mut self, definition: AgentDefinition) -> Self {
        self.0.push(Arc::new(definition));
        self.0.sort_by(|a, b| a.name.cmp(&b.name));
        self
    }
}

impl Agents for Roster {
    fn find(&self, name: &str) -> Option<Arc<AgentDefinition>> {
        self.0.iter().find(|agent| agent.name.as_str() == name).cloned()
    }

    fn list(&self) -> AgentList {
        self.0.clone().into()
    }

    fn system_prompt(&self, own: PromptSource<'_>) -> String {
        match own {
            PromptSource::Named(definition) => definition.context.clone(),
            PromptSource::AdHoc(prompt) => format!("The base. {prompt}"),
        }
    }
}

/// An agent whose context is its name, and that may call every agent.
pub(crate) fn agent(name: &str) -> AgentDefinition {
    let parsed = AgentName::parse(name).expect("a name");
    AgentDefinition {
        description: format!("Does what {name} does."),
        agents: CallableAgents::Any,
        ..AgentDefinition::new(parsed, format!("I am {name}."))
    }
}

/// One that runs in these places.
pub(crate) fn agent_in(name: &str, runtimes: Vec<Runtime>) -> AgentDefinition {
    AgentDefinition { runtimes, ..agent(name) }
}

/// A script with these replies, each for the agent with this context at this turn: context, turn,
/// steps.
pub(crate) fn script(replies: &[(&str, usize, &str)]) -> String {
    let reply = |(who, turn, steps): &(&str, usize, &str)| {
        let when = format!("system_contains = \"{who}\", turn = {turn}");
        replying(&when, steps)
    };
    format!("name = \"team\"\n{}", replies.iter().map(reply).collect::<String>())
}

/// One reply of a script.
pub(crate) fn replying(when: &str, steps: &str) -> String {
    format!("[[reply]]\nwhen = {{ {when} }}\nsteps = [{steps}]\n")
}

/// What is said to anything else.
pub(crate) fn otherwise(steps: &str) -> String {
    format!("[[reply]]\nsteps = [{steps}]\n")
}

/// A step that calls `call_agent`.
pub(crate) fn calls(arguments: &str) -> String {
    step("call_agent", arguments)
}

/// A step that calls a tool.
pub(crate) fn step(name: &str, arguments: &str) -> String {
    format!("{{ call = {{ name = \"{name}\", arguments_json = '''{arguments}''' }} }}")
}

/// A step that says something.
pub(crate) fn says(text: &str) -> String {
    format!("{{ text = '''{text}''' }}")
}

/// Ids that are the same each time.
#[derive(Default)]
pub(crate) struct Numbered(std::sync::atomic::AtomicU64);

impl antiphon_core::port::IdSource for Numbered {
    fn next(&self) -> uuid::Uuid {
        let number = self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        uuid::Uuid::from_u128(0x0197_0000_0000_7000_8000_0000_0000_0000 + u128::from(number))
    }
}

/// What a world of teams is made of.
pub(crate) struct Team {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) tools: Arc<Counting>,
    pub(crate) script: String,
    pub(crate) roster: Roster,
}

impl Team {
    pub(crate) fn new(script: String, roster: Roster) -> Self {
        Self {
            journal: Arc::new(MemoryJournal::new()),
            tools: Arc::new(Counting::default()),
            script,
            roster,
        }
    }

    pub(crate) fn world(&self) -> RuntimeDeps {
        RuntimeDeps {
            agents: Some(Arc::new(self.roster.clone())),
            runners: vec![Arc::new(Elsewhere { tools: Arc::clone(&self.tools) })],
            ..world::world(Arc::clone(&self.journal), &self.tools, &self.script)
        }
    }

    pub(crate) fn orchestrator(&self) -> Orchestrator {
        Orchestrator::new(self.world())
    }

    /// Every task, the oldest first.
    pub(crate) async fn tasks(&self) -> Vec<TaskSummary> {
        let limit = std::num::NonZeroUsize::MAX;
        let mut tasks =
            self.journal.tasks(TaskQuery { which: TaskSelector::All, limit }).await.expect("tasks");
        tasks.reverse();
        tasks
    }

    /// What happened to a task.
    pub(crate) async fn events(&self, task_id: &TaskId) -> Vec<EventBody> {
        let events = world::events(&*self.journal).await;
        events.into_iter().filter(|e| e.task_id == *task_id).map(|e| e.body).collect()
    }
}

/// Works on tasks in an orchestrator of its own, which leaves dispatches to the one above: what a
/// worker process does.
pub(crate) struct Elsewhere {
    tools: Arc<Counting>,
}

struct Only(Arc<dyn Provider>);

impl Models for Only {
    fn provider(
        &self,
        _: &ModelRef,
        _: &[ModelRef],
        _: Option<&RawJson>,
    ) -> Result<Arc<dyn Provider>, String> {
        Ok(Arc::clone(&self.0))
    }

    fn window_tokens(&self, _: &ModelRef) -> Option<u64> {
        None
    }
}

#[async_trait]
impl Runner for Elsewhere {
    fn kind(&self) -> &'static str {
        "elsewhere"
    }

    fn check(&self, config: &Value) -> Result<(), String> {
        match config["broken"].as_bool() {
            Some(true) => Err("it is broken".to_owned()),
            Some(false) | None => Ok(()),
        }
    }

    async fn run(&self, run: RunnerTask) -> Result<(), RunnerError> {
        if run.config["deaf"] == true {
            // It neither works nor stops.
            std::future::pending::<()>().await;
        }
        let settings = OrchestratorSettings {
            dispatch: Dispatch::Parent,
            storage_wait_max: Some(Duration::ZERO),
            ..OrchestratorSettings::default()
        };
        let orchestrator = Orchestrator::new(RuntimeDeps {
            journal: Arc::new(SingleTaskJournal::new(run.journal)),
            models: Arc::new(Only(run.provider)),
            tools: Arc::clone(&self.tools) as Arc<dyn ToolExecutor>,
            gate: Arc::new(OpenGate),
            agents: Some(Arc::new(Roster::default())),
            runners: Vec::new(),
            prices: Arc::new(PriceTable::default()),
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            settings,
        });
        let unavailable =
            |error: OrchestratorError| RunnerError::Unavailable { reason: error.to_string() };
        orchestrator.start(&run.task_id).await.map_err(unavailable)?;
        tokio::select! {
            _ = orchestrator.wait(&run.task_id) => {}
            () = run.cancel => {}
            () = run.shutdown => {}
        }
        orchestrator.shutdown(Duration::from_secs(5)).await;
        Ok(())
    }
}

/// The results that a call got, in order.
pub(crate) fn results(state: &TaskState) -> Vec<(String, bool)> {
    let mut results = Vec::new();
    for message in state.messages() {
        if let Message::ToolResult(result) = &**message {
            let text = result.content.iter().filter_map(|block| match block {
                antiphon_core::InputBlock::Text(text) => Some(text.text.clone()),
                antiphon_core::InputBlock::Image(_) => None,
            });
            results.push((text.collect(), result.is_error));
        }
    }
    results
}
