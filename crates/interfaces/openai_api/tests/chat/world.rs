//! A small world behind the interface: a scripted model that remembers what it was asked, a harmless tool,
//! two agents.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use antiphon_conformance::reference::HeldJournal;
use antiphon_core::port::{
    AgentList, Agents, Gate, GateRequest, GateVerdict, Piece, PieceSource, PromptSource,
    ProviderError, RandomIds, Rule, SystemClock, ToolContext,
};
use antiphon_core::{
    AgentDefinition, AgentName, CallableAgents, Effect, ErrorCode, ErrorResponse, ModelRef,
    Provider, RawJson, Request, SpendLimits, Tool, ToolError, ToolExecutor, ToolResult,
};
use antiphon_interface_transport::{
    ExposedAgents, ServerConfig, ServerDeps, ServerLimits, Token, serve,
};
use antiphon_project::{TaskFactory, TaskRequest};
use antiphon_runtime::{
    Budget, Models, NewTask, OpenGate, Orchestrator, OrchestratorSettings, PriorHistory,
    RuntimeConfig, RuntimeDeps,
};
use antiphon_scripted::{Script, ScriptedProvider};
use antiphon_test_server::two_keys;
use async_trait::async_trait;
use futures_util::Stream;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Deltas of the long answer: more than a watcher may be behind.
pub(crate) const LONG: usize = 20_000;

const ANSWERS: &str = r#"
name = "test"
[[reply]]
when = { last_user_contains = "delegate", tool_offered = "call_agent", results_since_user = 0 }
step = [{ text = "They work." }, { call = { name = "call_agent", arguments = { targets = [
    { agent = "helper", prompt = "look" }, { agent = "helper", prompt = "mute" },
] } } }]
[[reply]]
when = { last_user_contains = "later", tool_offered = "look", results_since_user = 0 }
step = [{ delay_ms = 300 }, { text = "Looking." }, { call = { name = "look", arguments = {} } }]
[[reply]]
when = { last_user_contains = "look", tool_offered = "look", results_since_user = 0 }
step = [{ text = "Looking." }, { call = { name = "look", arguments = {} } }]
[[reply]]
when = { last_user_contains = "wander", tool_offered = "look", results_since_user = 0 }
step = [
    { call = { id = "own", name = "look", arguments = {} } },
    { call = { id = "c1", name = "weather", arguments = { in = "Rome" } } },
]
[[reply]]
when = { last_user_contains = "weather", tool_offered = "weather", results_since_user = 0 }
usage = { input_tokens = 10, output_tokens = 5, cache_read_tokens = 3 }
step = [
    { call = { id = "c1", name = "weather", arguments = { in = "Rome" } } },
    { call = { id = "c2", name = "weather", arguments = { in = "Oslo" } } },
]
[[reply]]
when = { last_user_contains = "weather", results_since_user = 2 }
step = [{ text = "Then: {{last_result}}" }]
[[reply]]
when = { last_user_contains = "stall" }
step = [{ text = "One moment" }, { stall = true }]
[[reply]]
when = { last_user_contains = "mute" }
step = [{ stall = true }]
[[reply]]
when = { last_user_contains = "slow" }
step = [{ delay_ms = 300 }, { text = "At last." }]
[[reply]]
when = { last_user_contains = "tale" }
step = [{ text = "Once upon" }, { delay_ms = 300 }, { text = " a time." }, { delay_ms = 50 }, { text = " The end." }]
[[reply]]
when = { last_user_contains = "much" }
stop = "length"
step = [{ text = "And so" }]
[[reply]]
when = { last_user_contains = "filtered" }
stop = "error"
raw_stop = "content_filter"
step = [{ text = "I " }]
[[reply]]
when = { last_user_contains = "busy" }
step = [{ error = { kind = "rate_limited", message = "slow down" } }]
[[reply]]
when = { last_user_contains = "falter", tool_offered = "look", results_since_user = 0 }
step = [{ text = "Looking." }, { call = { name = "look", arguments = {} } }]
[[reply]]
when = { last_user_contains = "break" }
step = [{ text = "It was" }, { delay_ms = 300 }, { error = { kind = "overloaded", message = "too many" } }]
[[reply]]
when = { last_user_contains = "falter" }
step = [{ text = "I see" }, { delay_ms = 300 }, { error = { kind = "overloaded", message = "too many" } }]
[[reply]]
when = { last_user_contains = "story" }
chunk_chars = 1
step = [{ text = "x", repeat = 20000 }]
[[reply]]
when = { last_user_contains = "deliver", tool_offered = "final" }
step = [{ text = "Here." }, { call = { name = "final", arguments = { result = { a = 1 } } } }]
[[reply]]
when = { last_user_contains = "json" }
step = [{ text = "```json\n{\"a\": 2}\n```" }]
[[reply]]
usage = { input_tokens = 4, output_tokens = 2 }
step = [{ text = "You said {{last_user}}" }]
"#;

/// What the model was asked, and how many answers are under way.
pub(crate) struct ModelLog {
    pub(crate) requested: Mutex<Vec<Request>>,
    pub(crate) open: watch::Sender<usize>,
}

struct CountedAnswer {
    inner: PieceSource,
    model_log: Arc<ModelLog>,
}

impl Stream for CountedAnswer {
    type Item = Result<Piece, ProviderError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.inner.as_mut().poll_next(cx)
    }
}

impl Drop for CountedAnswer {
    fn drop(&mut self) {
        self.model_log.open.send_modify(|open| *open -= 1);
    }
}

struct LoggingModels(Arc<ModelLog>);

impl Provider for LoggingModels {
    fn open(&self, request: Request) -> PieceSource {
        self.0.requested.lock().unwrap().push(request.clone());
        self.0.open.send_modify(|open| *open += 1);
        let inner = ScriptedProvider::new(Script::parse(ANSWERS).unwrap()).open(request);
        Box::pin(CountedAnswer { inner, model_log: Arc::clone(&self.0) })
    }
}

impl Models for LoggingModels {
    fn provider(
        &self,
        _: &ModelRef,
        _: &[ModelRef],
        route: Option<&RawJson>,
    ) -> Result<Arc<dyn Provider>, String> {
        // A chat names no route to its model.
        assert_eq!(route, None);
        Ok(Arc::new(Self(Arc::clone(&self.0))))
    }

    fn window_tokens(&self, _: &ModelRef) -> Option<u64> {
        None
    }
}

struct TestTools;

#[async_trait]
impl ToolExecutor for TestTools {
    fn tools(&self) -> Vec<Arc<Tool>> {
        vec![Arc::new(Tool {
            name: "look".to_owned(),
            description: "Looks.".to_owned(),
            parameters: RawJson::parse(r#"{"type":"object"}"#).unwrap(),
        })]
    }

    fn effect(&self, tool: &str) -> Option<Effect> {
        (tool == "look").then_some(Effect::ReadOnly)
    }

    async fn execute(
        &self,
        tool: &str,
        _: &RawJson,
        _: ToolContext,
    ) -> Result<ToolResult, ToolError> {
        Ok(ToolResult::text(format!("{tool}: done")))
    }
}

struct AskBeforeLook;

#[async_trait]
impl Gate for AskBeforeLook {
    fn judge(&self, _: &GateRequest<'_>) -> GateVerdict {
        GateVerdict::Ask { reason: "It looks.".to_owned(), rule: Rule("look".to_owned()) }
    }

    async fn remember(&self, _: &Rule) -> Result<(), String> {
        Ok(())
    }
}

struct TestAgents;

impl Agents for TestAgents {
    fn find(&self, name: &str) -> Option<Arc<AgentDefinition>> {
        self.list().iter().find(|agent| agent.name.as_str() == name).cloned()
    }

    fn list(&self) -> AgentList {
        let agent = |name: &str| AgentDefinition::new(AgentName::parse(name).unwrap(), "You help.");
        let boss = AgentDefinition { agents: CallableAgents::Any, ..agent("boss") };
        [Arc::new(boss), Arc::new(agent("helper"))].into()
    }

    fn system_prompt(&self, _: PromptSource<'_>) -> String {
        String::new()
    }
}

struct Plain;

#[async_trait]
impl TaskFactory for Plain {
    fn agents(&self) -> Vec<AgentName> {
        TestAgents.list().iter().map(|agent| agent.name.clone()).collect()
    }

    fn models(&self) -> Vec<ModelRef> {
        vec![ModelRef::parse("scripted/test").unwrap()]
    }

    async fn task(&self, request: TaskRequest) -> Result<NewTask, ErrorResponse> {
        let model = request.model.unwrap_or_else(|| ModelRef::parse("scripted/test").unwrap());
        if model.provider() == "unknown" {
            let message = "there is no provider `unknown`".to_owned();
            let code = ErrorCode::InvalidRequest;
            return Err(ErrorResponse { code, message, details: None });
        }
        let agent = request.agent.as_deref().and_then(|name| TestAgents.find(name));
        Ok(NewTask {
            system_prompt: agent.as_ref().map_or("The project.", |agent| &agent.context).to_owned(),
            agents: agent.map_or(CallableAgents::Any, |agent| agent.agents.clone()),
            external_tools: request.external_tools,
            before: PriorHistory::Messages(request.history),
            limits: request.limits,
            output_schema: request.output_schema,
            ..NewTask::new(request.agent.unwrap_or_default(), model, request.message)
        })
    }
}

/// A server at work.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) orchestrator: Orchestrator,
    pub(crate) journal: Arc<HeldJournal>,
    /// The API keys of two persons.
    pub(crate) keys: [String; 2],
    pub(crate) model_log: Arc<ModelLog>,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinSet<()>,
    /// Of the keys.
    _folder: TempDir,
}

impl TestServer {
    pub(crate) async fn new() -> Self {
        Self::with(ServerLimits::default()).await
    }

    pub(crate) async fn with(limits: ServerLimits) -> Self {
        Self::of(limits, SpendLimits::default()).await
    }

    /// Where answers cost something, and so much may be spent.
    pub(crate) async fn of(limits: ServerLimits, total: SpendLimits) -> Self {
        let agents = ExposedAgents::AllOnLoopback;
        Self::gated(limits, total, Arc::new(OpenGate), agents).await
    }

    /// Where clients see these agents.
    pub(crate) async fn showing(agents: &[&str]) -> Self {
        let agents = agents.iter().map(|name| AgentName::parse(name).unwrap());
        let agents = ExposedAgents::Listed(agents.collect());
        let (limits, total) = (ServerLimits::default(), SpendLimits::default());
        Self::gated(limits, total, Arc::new(OpenGate), agents).await
    }

    /// Where a person is asked before each look.
    pub(crate) async fn asking() -> Self {
        let (limits, total) = (ServerLimits::default(), SpendLimits::default());
        let agents = ExposedAgents::AllOnLoopback;
        Self::gated(limits, total, Arc::new(AskBeforeLook), agents).await
    }

    async fn gated(
        limits: ServerLimits,
        total: SpendLimits,
        gate: Arc<dyn Gate>,
        chat_agents: ExposedAgents,
    ) -> Self {
        let journal = Arc::new(HeldJournal::new());
        let price = serde_json::from_str(r#"{"input":1000.0,"output":1000.0}"#).unwrap();
        let prices = [(ModelRef::parse("scripted/test").unwrap(), price)].into_iter().collect();
        let model_log =
            Arc::new(ModelLog { requested: Mutex::default(), open: watch::Sender::new(0) });
        let world = RuntimeDeps {
            journal: Arc::clone(&journal) as _,
            models: Arc::new(LoggingModels(Arc::clone(&model_log))),
            tools: Arc::new(TestTools),
            gate,
            agents: Some(Arc::new(TestAgents)),
            runners: Vec::new(),
            prices: Arc::new(prices),
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            settings: OrchestratorSettings::default(),
        };
        let budget = Budget { total, ..Budget::default() };
        let orchestrator = Orchestrator::new(RuntimeConfig { deps: world, budget });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let deps = ServerDeps {
            orchestrator: orchestrator.clone(),
            task_factory: Arc::new(Plain),
            token: Token::new(TOKEN.into()).unwrap(),
            hosts: Vec::new(),
            limits,
        };
        let folder = tempfile::tempdir().unwrap();
        let (ring, keys) = two_keys(folder.path());
        let (stop, stopped) = oneshot::channel::<()>();
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let config = ServerConfig::new(deps, antiphon_openai_api::interface());
            let config = ServerConfig { keys: Some(ring), chat_agents, ..config };
            serve(listener, config, async { drop(stopped.await) }).await.unwrap();
        });
        Self {
            address,
            orchestrator,
            journal,
            keys,
            model_log,
            stop: Some(stop),
            serving,
            _folder: folder,
        }
    }

    /// Waits until so many answers of the model are under way.
    pub(crate) async fn under_way(&self, answers: usize) {
        let mut open = self.model_log.open.subscribe();
        let there = open.wait_for(|open| *open == answers);
        tokio::time::timeout(Duration::from_secs(10), there).await.unwrap().unwrap();
    }

    pub(crate) fn requested(&self) -> Vec<Request> {
        self.model_log.requested.lock().unwrap().clone()
    }

    pub(crate) fn stop(&mut self) {
        drop(self.stop.take());
    }

    pub(crate) async fn ended(mut self) {
        self.stop();
        self.serving.join_next().await.unwrap().unwrap();
        self.orchestrator.shutdown(Duration::from_secs(5)).await;
    }
}
