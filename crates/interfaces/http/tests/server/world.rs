//! A server with a scripted model, harmless tools, and a task factory that keeps what
//! it is asked.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};

use antiphon_a2a_api::{A2a, A2aConfig, ExposedAgents};
use antiphon_api::{AgentChange, AgentOrigin};
use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::port::{
    AgentList, Agents, Journal, PromptSource, Runner, RunnerError, RunnerTask,
};
use antiphon_core::{
    AgentDefinition, AgentName, CallableAgents, ErrorCode, ErrorResponse, ModelRef, RawJson,
    TaskLimits,
};
use antiphon_http::Webhooks;
use antiphon_interface_transport::{Listeners, ServerConfig, ServerDeps, ServerLimits, Token};
use antiphon_mcp_server::McpServer;
use antiphon_project::{DefinedAgent, TaskFactory, TaskRequest};
use antiphon_runtime::{Budget, NewTask, Orchestrator, PriorHistory, RuntimeConfig, RuntimeDeps};
use antiphon_test_server::{RunningServer, runtime_deps};
use async_trait::async_trait;
use serde_json::Value;
use tokio::net::TcpListener;

pub(crate) use antiphon_test_server::TOKEN;

pub(crate) const ANSWERS: &str = r#"
name = "test"
[[reply]]
when = { last_user_contains = "look" , results_since_user = 0 }
step = [{ text = "Looking." }, { call = { name = "look", arguments = { at = "it" } } }]
[[reply]]
when = { last_user_contains = "hang", results_since_user = 0 }
step = [{ call = { name = "hang", arguments = {} } }]
[[reply]]
when = { last_user_contains = "which color", results_since_user = 0 }
step = [{ call = { name = "todo", arguments_json = '{"items":[{"text":"ask","status":"in_progress"}]}' } },
  { call = { name = "ask_user", arguments_json = '{"question":"Which color?","choices":["Red","Blue"],"free_text":false}' } }]
[[reply]]
when = { last_user_contains = "which color" }
step = [{ text = "{{last_result}}" }]
[[reply]]
when = { last_user_contains = "make a plan", results_since_user = 0 }
step = [{ call = { name = "submit_plan", arguments = { plan = "1. Act." } } }]
[[reply]]
when = { last_user_contains = "act", results_since_user = 0 }
step = [{ call = { name = "act", arguments = {} } }]
[[reply]]
when = { last_user_contains = "weather", results_since_user = 0 }
step = [{ call = { id = "c1", name = "weather", arguments = { in = "Rome" } } }]
[[reply]]
when = { last_user_contains = "weather" }
step = [{ text = "{{last_result}}" }]
[[reply]]
when = { last_user_contains = "half an answer" }
step = [{ text = "Half an answer of a model that stalls" }, { stall = true }]
[[reply]]
when = { last_user_contains = "shout" }
step = [{ text = "0123456789abcdef", repeat = 1000000 }]
[[reply]]
step = [{ text = "Done with {{last_user}}" }]
"#;

/// A runner without a sandbox. Its tasks do nothing until they are canceled.
struct UnlimitedRunner;

#[async_trait]
impl Runner for UnlimitedRunner {
    fn kind(&self) -> &'static str {
        "unbound"
    }

    fn is_unrestricted(&self) -> bool {
        true
    }

    fn check(&self, _: &Value) -> Result<(), String> {
        Ok(())
    }

    async fn run(&self, run: RunnerTask) -> Result<(), RunnerError> {
        tokio::select! {
            () = run.cancel => {}
            () = run.shutdown => {}
        }
        Ok(())
    }
}

/// Who there is to be sent something.
struct TestAgents;

impl Agents for TestAgents {
    fn find(&self, name: &str) -> Option<Arc<AgentDefinition>> {
        self.list().iter().find(|agent| agent.name.as_str() == name).cloned()
    }

    fn list(&self) -> AgentList {
        let agent = |name: &str, model: Option<&str>| {
            let mut agent = AgentDefinition::new(AgentName::parse(name).unwrap(), "You are here.");
            agent.model = model.map(|model| ModelRef::parse(model).unwrap());
            let schema = RawJson::parse(r#"{"type":"object","required":["branch"]}"#).unwrap();
            agent.intents.insert("review".to_owned(), schema);
            agent
        };
        let reviewer = AgentDefinition {
            tools: Some(vec!["look".to_owned(), "hang".to_owned()]),
            limits: TaskLimits { turns_max: NonZeroU32::new(50), ..TaskLimits::default() },
            ..agent("reviewer", Some("scripted/test"))
        };
        [Arc::new(agent("mute", None)), Arc::new(reviewer)].into()
    }

    fn system_prompt(&self, _: PromptSource<'_>) -> String {
        String::new()
    }
}

/// Makes tasks as they are asked for, and keeps the requests and the agents that were written.
#[derive(Default)]
pub(crate) struct RecordingFactory {
    pub(crate) requested: Mutex<Vec<TaskRequest>>,
    pub(crate) written: Mutex<Vec<DefinedAgent>>,
}

impl RecordingFactory {
    /// An agent of the project; `mute` is the user's own.
    fn define(name: &AgentName, change: &AgentChange) -> DefinedAgent {
        let mut agent =
            AgentDefinition::new(name.clone(), change.context.clone().unwrap_or_default());
        agent.description = change.description.clone().unwrap_or_default();
        let (origin, path) = (AgentOrigin::Project, format!("agents/{name}.md"));
        DefinedAgent {
            definition: Arc::new(agent),
            origin,
            path,
            shadows: Vec::new(),
            fault: None,
            imported: None,
        }
    }
}

#[async_trait]
impl TaskFactory for RecordingFactory {
    fn agents(&self) -> Vec<AgentName> {
        TestAgents.list().iter().map(|agent| agent.name.clone()).collect()
    }

    fn system_prompt(&self, prompt: &str) -> String {
        format!("You are an agent.\n\n{prompt}")
    }

    fn defined(&self) -> Vec<DefinedAgent> {
        let listed = |definition: Arc<AgentDefinition>| {
            let name = definition.name.as_str();
            let origin = if name == "mute" { AgentOrigin::User } else { AgentOrigin::Project };
            DefinedAgent {
                path: format!("agents/{name}.md"),
                origin,
                definition,
                shadows: Vec::new(),
                fault: None,
                imported: None,
            }
        };
        let mut defined: Vec<DefinedAgent> =
            TestAgents.list().iter().cloned().map(listed).collect();
        defined.extend(self.written.lock().unwrap().iter().cloned());
        defined
    }

    async fn create_agent(
        &self,
        name: &AgentName,
        change: AgentChange,
    ) -> Result<DefinedAgent, ErrorResponse> {
        if self.defined().iter().any(|defined| defined.definition.name == *name) {
            let (code, message) = (ErrorCode::Conflict, "it is there".to_owned());
            return Err(ErrorResponse { code, message, details: None });
        }
        let defined = Self::define(name, &change);
        self.written.lock().unwrap().push(defined.clone());
        Ok(defined)
    }

    async fn change_agent(
        &self,
        name: &AgentName,
        change: AgentChange,
    ) -> Result<DefinedAgent, ErrorResponse> {
        self.delete_agent(name).await?;
        self.create_agent(name, change).await
    }

    async fn delete_agent(&self, name: &AgentName) -> Result<(), ErrorResponse> {
        self.written.lock().unwrap().retain(|defined| defined.definition.name != *name);
        Ok(())
    }

    async fn task(&self, request: TaskRequest) -> Result<NewTask, ErrorResponse> {
        self.requested.lock().unwrap().push(request.clone());
        match request.agent.as_deref() {
            Some("nobody") => {
                let (code, message) =
                    (ErrorCode::NotFound, "there is no agent `nobody`".to_owned());
                return Err(ErrorResponse { code, message, details: None });
            }
            Some("panic") => panic!("as asked"),
            Some("sleep") => std::future::pending().await,
            Some(_) | None => {}
        }
        let model = request.model.unwrap_or_else(|| ModelRef::parse("scripted/test").unwrap());
        let agent = request.agent.unwrap_or_else(|| "default".to_owned());
        Ok(NewTask {
            system_prompt: request.system_prompt.unwrap_or_default(),
            tools: request.tools,
            agents: request.agents.map_or(CallableAgents::Any, CallableAgents::Only),
            external_tools: request.external_tools,
            before: PriorHistory::Messages(request.history),
            limits: request.limits,
            output_schema: request.output_schema,
            session_id: request.session_id,
            ..NewTask::new(agent, model, request.message)
        })
    }
}

/// A server of all interfaces without webhooks, API keys and telemetry.
pub(crate) fn server_config(deps: ServerDeps) -> ServerConfig {
    with_webhooks(deps, None)
}

/// The same, with webhooks.
pub(crate) fn with_webhooks(deps: ServerDeps, webhooks: Option<Webhooks>) -> ServerConfig {
    // Only its routes are of interest here.
    let folder = tempfile::tempdir().unwrap();
    let a2a = A2a::new(A2aConfig::new(folder.path())).unwrap();
    let interface = antiphon_http::interface(webhooks)
        .merge(antiphon_openai_api::interface_beside(antiphon_anthropic_api::models))
        .merge(antiphon_anthropic_api::interface())
        .merge(a2a.interface())
        .merge(McpServer::new(ExposedAgents::AllOnLoopback).interface());
    ServerConfig::new(deps, interface)
}

/// A server at work.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) orchestrator: Orchestrator,
    pub(crate) journal: Arc<MemoryJournal>,
    pub(crate) task_factory: Arc<RecordingFactory>,
    running: RunningServer,
}

impl TestServer {
    pub(crate) async fn new() -> Self {
        Self::with(ServerLimits::default()).await
    }

    pub(crate) async fn with(limits: ServerLimits) -> Self {
        let journal = Arc::new(MemoryJournal::new());
        Self::over(Arc::clone(&journal) as Arc<dyn Journal>, journal, limits).await
    }

    /// Works with `used`, which may be faulty.
    pub(crate) async fn over(
        used: Arc<dyn Journal>,
        journal: Arc<MemoryJournal>,
        limits: ServerLimits,
    ) -> Self {
        Self::built(world(used).into(), journal, limits, server_config).await
    }

    /// Where answers cost something, and so much may be spent.
    pub(crate) async fn paying(
        budget: Budget,
        config: impl FnOnce(ServerDeps) -> ServerConfig,
    ) -> Self {
        let journal = Arc::new(MemoryJournal::new());
        let price = serde_json::from_str(r#"{"input":1000.0,"output":1000.0}"#).unwrap();
        let prices = [(ModelRef::parse("scripted/test").unwrap(), price)].into_iter().collect();
        let world = RuntimeDeps { prices: Arc::new(prices), ..world(journal.clone()) };
        Self::built(RuntimeConfig { deps: world, budget }, journal, ServerLimits::default(), config)
            .await
    }

    /// With more than deps.
    pub(crate) async fn with_config(config: impl FnOnce(ServerDeps) -> ServerConfig) -> Self {
        let journal = Arc::new(MemoryJournal::new());
        let used = Arc::clone(&journal) as Arc<dyn Journal>;
        Self::built(world(used).into(), journal, ServerLimits::default(), config).await
    }

    pub(crate) async fn built(
        runtime: RuntimeConfig,
        journal: Arc<MemoryJournal>,
        limits: ServerLimits,
        config: impl FnOnce(ServerDeps) -> ServerConfig,
    ) -> Self {
        Self::listening(runtime, journal, limits, config, Listeners::from).await
    }

    /// Where else it listens.
    pub(crate) async fn on(
        limits: ServerLimits,
        listeners: impl FnOnce(TcpListener) -> Listeners,
    ) -> Self {
        let journal = Arc::new(MemoryJournal::new());
        let used = Arc::clone(&journal) as Arc<dyn Journal>;
        Self::listening(world(used).into(), journal, limits, server_config, listeners).await
    }

    async fn listening(
        runtime: RuntimeConfig,
        journal: Arc<MemoryJournal>,
        limits: ServerLimits,
        config: impl FnOnce(ServerDeps) -> ServerConfig,
        listeners: impl FnOnce(TcpListener) -> Listeners,
    ) -> Self {
        let orchestrator = Orchestrator::new(runtime);
        let task_factory = Arc::new(RecordingFactory::default());
        let deps = ServerDeps {
            orchestrator: orchestrator.clone(),
            task_factory: Arc::clone(&task_factory) as Arc<dyn TaskFactory>,
            token: Token::new(TOKEN.into()).unwrap(),
            hosts: vec!["team.example".to_owned()],
            limits,
        };
        let address = "127.0.0.1:0".parse().unwrap();
        let running = RunningServer::start(address, config(deps), listeners).await;
        Self { address: running.address, orchestrator, journal, task_factory, running }
    }

    /// Tells the server to end.
    pub(crate) fn stop(&mut self) {
        self.running.begin_stop();
    }

    /// Waits until it has.
    pub(crate) async fn ended(self) {
        self.running.stop().await;
    }
}

pub(crate) fn world(journal: Arc<dyn Journal>) -> RuntimeDeps {
    RuntimeDeps {
        agents: Some(Arc::new(TestAgents)),
        runners: vec![Arc::new(UnlimitedRunner)],
        ..runtime_deps(journal, ANSWERS)
    }
}
